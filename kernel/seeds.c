/* numpy.random.seed() walks through numpy, and each page it touches is copied, and each large page split, in every
 * session. What it comes to is some random words in the state of the generator; so they are put there. Python's own
 * starts anew in every fork that Python is told of, as that of an interpreter is; a branch's is not. */
#include <Python.h>

#include "seeds.h"

#include "helpers.h"

#include "proto/base.h"

#include <sys/random.h>

#define WORDS 624

/* The state of numpy's Mersenne Twister. */
struct twister {
	uint32_t key[WORDS];
	int at;
};

static struct twister *twister; /* NULL: there is none, or not as known here */

void seeds_find(void)
{
	PyObject *address = PyObject_CallNoArgs(helper(HELPER_GENERATOR));

	if (address)
		twister = PyLong_AsVoidPtr(address);
	Py_XDECREF(address);
	PyErr_Clear();
}

void seeds_renew(void)
{
	uint32_t key[WORDS];

	if (!twister || getrandom(key, sizeof(key), GRND_NONBLOCK) != sizeof(key)) {
		seeds_renew_any();
		return;
	}
	key[0] = 1U << 31; /* as numpy has it: the state is not zero, whatever the rest */
	memcpy(twister->key, key, sizeof(key));
	twister->at = WORDS;
}

void seeds_renew_any(void)
{
	Py_XDECREF(PyObject_CallNoArgs(helper(HELPER_RESEED)));
	PyErr_Clear();
}
