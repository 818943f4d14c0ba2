/* The text for a model before it calls anything: how sessions work, and on request their content. A cell finds
 * that out, in a session of the profile. */
#include "instructions.h"

#include "base/json.h"
#include "base/text.h"

/* Of %s, the language. */
#define GENERAL                                                                                                    \
	"Runs %s in sessions that remember variables, imports and files between calls. "                           \
	"Use python_session_execute for "                                                                          \
	"work in several steps and python_execute_once for a calculation that stands alone. "                      \
	"Calls without a session_id share "                                                                        \
	"the session of this conversation, whose name each result tells; name others to keep "                     \
	"tasks apart. The value of a last "                                                                        \
	"expression comes back by itself, figures as images; files are written to the "                            \
	"working directory. Read `state` and "                                                                     \
	"`note` of a result that failed: they say what became of the session.\n"

/* It prints sentences. The last line asks for more memory than there is, so its error says how much there is. */
static const char probe[] =
	"import platform, socket, subprocess\n"
	"from importlib import metadata, util\n"
	"\n"
	"def version(name):\n"
	"    try: return f'{name} {metadata.version(name)}'\n"
	"    except metadata.PackageNotFoundError: return ''\n"
	"\n"
	"def refused(attempt):\n"
	"    try: attempt()\n"
	"    except PermissionError: return True\n"
	"    except Exception: pass\n"
	"    return False\n"
	"\n"
	"names = '''numpy pandas scipy matplotlib seaborn plotly altair bokeh scikit-learn statsmodels sympy "
	"networkx\n"
	"polars pyarrow duckdb SQLAlchemy openpyxl XlsxWriter requests httpx beautifulsoup4 lxml Pillow "
	"opencv-python\n"
	"torch tensorflow jax transformers nltk spacy xgboost lightgbm numba dask tqdm PyYAML pydantic "
	"Jinja2'''.split()\n"
	"there = ', '.join(filter(None, map(version, names)))\n"
	"print(f'Python {platform.python_version()} with ' + (there or 'its standard library alone') + '.')\n"
	"if util.find_spec('IPython'): print('Magics of IPython work, such as %time and %whos.')\n"
	"if refused(lambda: socket.socket().close()): print('There is no network.')\n"
	"if refused(lambda: subprocess.run(['true'])): print('No programs can be run: no shell.')\n"
	"way = __pip__.__doc__\n"
	"print(way[:1].upper() + way[1:] + '.')\n"
	"if refused(lambda: open('/etc/shadow')): print('Most files outside the working directory are out of "
	"reach.')\n"
	"bytearray(1 << 60)\n";

int instructions_ask(struct lair *lair, struct lair_call **callp, const char *profile)
{
	struct lair_exec exec = {.profile = profile, .code = lair_text(probe)};

	return lair_exec(lair, callp, &exec);
}

/* A session of another language cannot run the probe, but its answer names the language. */
static json_t *of_language(struct lair_text language)
{
	_cleanup_(freep) char *name = strndup(language.data, language.size);

	return json_sprintf(GENERAL "The code is %s, not Python, although the tools are named after Python.\n",
			    name ? name : "", name ? name : "");
}

json_t *instructions_json(const struct lair_result *found)
{
	json_t *sentences, *memory, *text = NULL;

	if (found->language.data)
		return of_language(found->language);
	sentences = json_text(found->out);
	memory = found->error_value.size > 0 ? json_text(found->error_value) : NULL;
	if (json_is_string(sentences))
		text = json_sprintf(GENERAL "%s%s%s%s", "Python", json_string_value(sentences),
				    memory ? "Memory: " : "", memory ? json_string_value(memory) : "",
				    memory ? ".\n" : "");
	json_decref(sentences);
	json_decref(memory);
	return text ? text : json_sprintf(GENERAL, "Python");
}

json_t *instructions_general(const struct lair_counters *counters, const char *profile)
{
	size_t at_profiles = 0, at_languages = 0;
	struct lair_text name, language;

	while (counters && lair_next_text(counters->profiles, &at_profiles, &name) &&
	       lair_next_text(counters->languages, &at_languages, &language)) {
		if (!text_is(name, profile ? profile : "default"))
			continue;
		return text_is(language, "python") ? json_sprintf(GENERAL, "Python") : of_language(language);
	}
	return json_sprintf(GENERAL, "code");
}
