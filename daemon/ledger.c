/* Ledgers. The file is as long as what has been written to it; a write that is cut short by SIGKILL leaves a
 * record that its length betrays. */
#include "ledger.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Below this much it is not worth the while. */
#define STALE_SIZE (128U << 10)
#define LENGTH 8

void ledger_init(struct ledger *ledger)
{
	*ledger = (struct ledger){.fd = -1};
	msgpack_sbuffer_init(&ledger->record);
}

void ledger_deinit(struct ledger *ledger)
{
	fd_close(ledger->fd);
	msgpack_sbuffer_destroy(&ledger->record);
	ledger_init(ledger);
}

int ledger_create(struct ledger *ledger)
{
	ledger->fd = memfd_create("lair-ledger", MFD_CLOEXEC);
	ledger->size = ledger->dead = 0;
	return ledger->fd < 0 ? -errno : 0;
}

static int read_all(int fd, char *text, uint64_t size, uint64_t at)
{
	while (size > 0) {
		ssize_t n = pread(fd, text, size, (off_t)at);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return -EBADMSG;
		text += MAX(n, 0);
		at += (uint64_t)MAX(n, 0);
		size -= (uint64_t)MAX(n, 0);
	}
	return 0;
}

/* Where what is whole ends. */
static int whole_size(int fd, uint64_t size, uint64_t *wholep)
{
	uint64_t at = 0, length;
	int r = 0;

	while (!r && size - at >= LENGTH) {
		r = read_all(fd, (char *)&length, LENGTH, at);
		if (r || length > size - at - LENGTH)
			break;
		at += LENGTH + length;
	}
	*wholep = at;
	return r;
}

int ledger_open(struct ledger *ledger, int fd)
{
	struct stat status;
	int r;

	ledger->fd = fd;
	if (fstat(fd, &status) < 0)
		return -errno;
	r = whole_size(fd, (uint64_t)status.st_size, &ledger->size);
	if (!r && ftruncate(fd, (off_t)ledger->size) < 0)
		r = -errno;
	/* How much is alive, nobody has counted: one that is large is begun anew, or each router would add to it.
	 */
	ledger->dead = ledger->size;
	return r;
}

int ledger_cut(struct ledger *ledger, uint64_t size)
{
	ledger->size = ledger->dead = size;
	return ftruncate(ledger->fd, (off_t)size) < 0 ? -errno : 0;
}

/* In one write; a fatal signal may still cut it short. */
static int write_record(struct ledger *ledger)
{
	const char *data = ledger->record.data;
	size_t size = ledger->record.size, written = 0;

	while (written < size) {
		ssize_t n = pwrite(ledger->fd, data + written, size - written, (off_t)(ledger->size + written));

		if (n < 0 && errno != EINTR) {
			int r = -errno;

			(void)!ftruncate(ledger->fd, (off_t)ledger->size);
			return r;
		}
		written += (size_t)MAX(n, 0);
	}
	ledger->size += size;
	return 0;
}

int ledger_append(struct ledger *ledger, const struct wire_schema *schema, const void *record)
{
	uint64_t length = 0;
	int r;

	ledger->record.size = 0;
	r = msgpack_sbuffer_write(&ledger->record, (const char *)&length, LENGTH) ? -ENOMEM : 0;
	if (!r)
		r = wire_encode(&ledger->record, schema, record);
	if (r)
		return r;
	length = ledger->record.size - LENGTH;
	memcpy(ledger->record.data, &length, LENGTH);
	return write_record(ledger);
}

bool ledger_is_stale(const struct ledger *ledger)
{
	return ledger->dead > STALE_SIZE && ledger->dead > ledger->size / 2;
}

int ledger_read(const struct ledger *ledger, char **textp)
{
	_cleanup_(freep) char *text = malloc(ledger->size + 1);
	int r;

	if (!text)
		return -ENOMEM;
	r = read_all(ledger->fd, text, ledger->size, 0);
	if (!r)
		*textp = steal_ptr(&text);
	return r;
}

bool ledger_next(const struct ledger *ledger, const char *text, uint64_t *at, struct wire_frame *record)
{
	uint64_t length;

	if (ledger->size - *at < LENGTH)
		return false;
	memcpy(&length, text + *at, LENGTH);
	if (length > ledger->size - *at - LENGTH ||
	    wire_open(record, (struct bytes){.data = text + *at + LENGTH, .size = length}))
		return false;
	*at += LENGTH + length;
	return true;
}
