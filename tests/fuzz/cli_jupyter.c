/* Any frames, as any client of Jupyter may send them, to a kernel with a key and to one without: what is taken is
 * whole, and what is signed is taken once. */
#include "jupyter/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

/* A byte says how long the next frame is; 255: it is the delimiter. */
static void cut(struct frames *frames, const uint8_t *data, size_t size)
{
	while (size > 0) {
		bool delimiter = *data == 255;
		size_t n = delimiter ? 0 : MIN((size_t)*data, size - 1);

		check(frames_add(frames, delimiter ? "<IDS|MSG>" : (const char *)data + 1, delimiter ? 9 : n) !=
		      -ENOMEM);
		data += n + 1;
		size -= n + 1;
	}
}

static void take(const struct frames *frames, struct lair_text key)
{
	struct message message;
	struct signer signer;

	check(signer_init(&signer, key) == 0);
	if (!message_read(&message, frames, &signer)) {
		check(message.n_identities < frames->n && message.buffers <= frames->n);
		check(json_is_object(message.header) && json_is_object(message.content));
		check(*message_text(message.header, "msg_type"));
		(void)message_flag(message.content, "silent", false);
		message_deinit(&message);
		check(key.size == 0 || message_read(&message, frames, &signer) == -EBADMSG);
	}
	signer_deinit(&signer);
}

/* The same frames, with the signature that they should have. */
static void sign(struct frames *frames)
{
	struct signer signer;
	size_t n = 0;

	while (n < frames->n && !(frames->items[n].size == 9 && memcmp(frames->items[n].data, "<IDS|MSG>", 9) == 0))
		n++;
	if (n + 6 > frames->n || frames->items[n + 1].size != SIGNATURE_SIZE)
		return;
	check(signer_init(&signer, lair_text("key")) == 0);
	signer_sign(&signer, (char *)frames->items[n + 1].data, frames->items + n + 2);
	signer_deinit(&signer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct frames frames = {.items = NULL};

	cut(&frames, data, size);
	take(&frames, lair_text(""));
	take(&frames, lair_text("key"));
	sign(&frames);
	take(&frames, lair_text("key"));
	frames_deinit(&frames);
	return 0;
}
