/* numpy.random.seed() walks through numpy. In every session each page that it touches would be copied, and each
 * large page split. All it does in the end is to put random words into the state of the generator; so we put
 * them there. Python's own generator starts anew in every fork that Python knows of, such as an interpreter's; a
 * branch's fork is not one, and neither is that of a state that a session goes back to. sqlite's starts anew when a
 * process of another number opens a file, but not for files that are open. */
#include <Python.h>

#include "seeds.h"

#include "helpers.h"

#include "owned.h"

#include "proto/base.h"

#include <dlfcn.h>
#include <sys/random.h>

#define WORDS 624

/* The state of numpy's Mersenne Twister. */
struct twister {
	uint32_t key[WORDS];
	int at;
};

static struct twister *twister; /* NULL: there is none, or it looks different from ours */
static void (*sqlite_randomness)(int size, void *out);

/* The function is in the library that Python's module needs, or in the module itself. The library stays loaded from
 * now on. */
static void sqlite_find(void)
{
	PyObject *module = PyDict_GetItemString(PyImport_GetModuleDict(), "_sqlite3"); /* borrowed */
	OWNED *file = module && !sqlite_randomness ? PyObject_GetAttrString(module, "__file__") : NULL;
	const char *path = file && PyUnicode_Check(file) ? PyUnicode_AsUTF8(file) : NULL;
	void *library = path ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : NULL;

	if (library)
		*(void **)&sqlite_randomness = dlsym(library, "sqlite3_randomness");
	PyErr_Clear();
}

static void sqlite_renew(void)
{
	if (sqlite_randomness)
		sqlite_randomness(0, NULL);
}

void seeds_find(void)
{
	OWNED *address = PyObject_CallNoArgs(helper(HELPER_GENERATOR));

	sqlite_find();
	if (address)
		twister = PyLong_AsVoidPtr(address);
	PyErr_Clear();
}

void seeds_renew(void)
{
	uint32_t key[WORDS];

	if (!twister || getrandom(key, sizeof(key), GRND_NONBLOCK) != sizeof(key)) {
		seeds_renew_any(true);
		return;
	}
	key[0] = 1U << 31; /* as numpy does it: the state is then never zero */
	memcpy(twister->key, key, sizeof(key));
	twister->at = WORDS;
	sqlite_renew();
}

void seeds_renew_any(bool every)
{
	sqlite_find();
	sqlite_renew();
	Py_XDECREF(PyObject_CallOneArg(helper(HELPER_RESEED), every ? Py_True : Py_False));
	PyErr_Clear();
}
