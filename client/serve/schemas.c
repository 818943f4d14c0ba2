/* The schemas of requests and answers, by name. */
#include "schema.h"

/* In every string: one line is one property. */
#define NULLABLE(type) "{\"type\": [\"" type "\", \"null\"]}"

const struct schema_text schemas[] = {
	{"Problem",
	 "{\"type\": \"object\", \"description\": \"What went wrong: RFC 9457.\","
	 "\"required\": [\"status\", \"code\", \"detail\"], \"properties\": {"
	 "\"type\": {\"type\": \"string\"},"
	 "\"title\": {\"type\": \"string\"},"
	 "\"status\": {\"type\": \"integer\"},"
	 "\"detail\": {\"type\": \"string\", \"description\": \"One sentence for a person.\"},"
	 "\"code\": {\"type\": \"string\", \"description\": \"For programs, and stable: those of laird's socket, "
	 "and unauthorized, not_found, bad_method.\"}}}"},
	{"Health", "{\"type\": \"object\", \"required\": [\"status\"], \"properties\": {"
		   "\"status\": {\"type\": \"string\", \"enum\": [\"ok\"]},"
		   "\"version\": {\"type\": \"string\"}}}"},
	{"OpenAPI", "{\"type\": \"object\"}"},
	{"Exec",
	 "{\"type\": \"object\", \"additionalProperties\": false, \"required\": [\"code\"], \"properties\": {"
	 "\"code\": {\"type\": \"string\", \"description\": \"Python.\"},"
	 "\"profile\": {\"type\": \"string\", \"minLength\": 1, \"maxLength\": 128,"
	 " \"description\": \"The policy of a new session.\"},"
	 "\"timeout\": {\"type\": \"number\", \"minimum\": 0, \"maximum\": 1000000000,"
	 " \"description\": \"Seconds; 0: the profile's.\"},"
	 "\"figure\": {\"type\": \"string\", \"enum\": [\"png\", \"svg\"]},"
	 "\"values\": {\"type\": \"boolean\", \"description\": \"An error has the values of small local "
	 "variables.\"},"
	 "\"reload\": {\"type\": \"boolean\", \"description\": \"First import again the modules that were "
	 "edited.\"},"
	 "\"again\": {\"type\": \"boolean\", \"description\": \"Calls may repeat what was done before.\"},"
	 "\"detach\": {\"type\": \"boolean\", \"description\": \"Do not wait: the answer has the key of the "
	 "result.\"},"
	 "\"input\": {\"type\": \"boolean\", \"description\": \"With events: the cell may read from stdin.\"},"
	 "\"directory\": {\"type\": \"string\", \"minLength\": 1, \"description\": \"In the workspace.\"},"
	 "\"birth\": {\"type\": \"integer\", \"minimum\": 0, \"description\": \"Only in the session of this "
	 "birth.\"},"
	 "\"env\": {\"type\": \"object\", \"description\": \"Environment variables for this cell alone.\"}}}"},
	{"Execute",
	 "{\"type\": \"object\", \"additionalProperties\": false, \"required\": [\"code\"], \"properties\": {"
	 "\"code\": {\"type\": \"string\", \"description\": \"Python.\"},"
	 "\"language\": {\"type\": \"string\", \"enum\": [\"python\", \"python3\", \"py\"]},"
	 "\"stdin\": {\"type\": \"string\", \"description\": \"What the code reads from sys.stdin.\"},"
	 "\"timeout\": {\"type\": \"number\", \"minimum\": 0, \"maximum\": 1000000000},"
	 "\"profile\": {\"type\": \"string\", \"minLength\": 1, \"maxLength\": 128}}}"},
	{"Executed",
	 "{\"type\": \"object\", \"required\": [\"stdout\", \"stderr\", \"exit_code\", \"time_ms\"], "
	 "\"properties\": {"
	 "\"stdout\": {\"type\": \"string\"},"
	 "\"stderr\": {\"type\": \"string\"},"
	 "\"exit_code\": {\"type\": \"integer\"},"
	 "\"time_ms\": {\"type\": \"number\"},"
	 "\"text\": " NULLABLE(
		 "string") ","
			   "\"error\": " NULLABLE(
				   "object") ","
					     "\"cause\": " NULLABLE(
						     "string") ","
							       "\"displays\": {\"type\": \"array\", \"items\": "
							       "{\"type\": \"object\"}},"
							       "\"truncated\": {\"type\": \"boolean\"}}}"},
	{"Result",
	 "{\"type\": \"object\", \"description\": \"What came of a cell, or with detach the key under which that "
	 "will be.\","
	 "\"properties\": {"
	 "\"session\": " NULLABLE(
		 "string") ","
			   "\"key\": " NULLABLE(
				   "string") ","
					     "\"cell\": " NULLABLE(
						     "integer") ","
								"\"returncode\": {\"type\": \"integer\"},"
								"\"state\": {\"type\": \"string\", "
								"\"description\": \"kept, new, rolled_back, reset "
								"or ended\"},"
								"\"cause\": " NULLABLE(
									"string") ","
										  "\"stdout\": " NULLABLE(
											  "string") ","
												    "\"stderr\":"
												    " " NULLABLE(
													    "strin"
													    "g") ","
														 "\"text\": " NULLABLE(
															 "string") ","
																   "\"data\": " NULLABLE(
																	   "object") ","
																		     "\"displays\": {\"type\": \"array\", \"items\": {\"type\": \"object\"}},"
																		     "\"error\": " NULLABLE(
																			     "object") ","
																				       "\"blocked\": {\"type\": \"array\", \"items\": {\"type\": \"object\"}},"
																				       "\"artifacts\": {\"type\": \"array\", \"items\": {\"type\": \"object\"}},"
																				       "\"duration_ms\": {\"type\": \"number\"},"
																				       "\"birth\": {\"type\": \"integer\"}}}"},
};
const size_t n_schemas = ARRAY_SIZE(schemas);
