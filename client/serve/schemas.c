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
	 "\"functions\": {\"type\": \"array\", \"maxItems\": 512, "
	 "\"items\": {\"$ref\": \"#/components/schemas/Function\"}},"
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
	{"Nothing", "{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {}}"},
	{"Done", "{\"type\": \"object\", \"properties\": {\"reset\": {\"type\": \"boolean\"}, "
		 "\"effects\": {\"type\": \"array\", \"items\": {\"type\": \"object\"}}}}"},
	{"Open", "{\"type\": \"object\", \"additionalProperties\": false, "
		 "\"properties\": {\"profile\": {\"type\": \"string\", \"minLength\": 1, \"maxLength\": 128}}}"},
	{"Session", "{\"type\": \"object\", \"required\": [\"session\", \"profile\", \"state\", \"cells\", "
		    "\"birth\"], \"properties\": {\"session\": {\"type\": \"string\"}, "
		    "\"profile\": {\"type\": \"string\"}, \"state\": {\"type\": \"string\", "
		    "\"description\": \"starting, idle, busy or closing\"}, \"uid\": {\"type\": \"integer\"}, "
		    "\"workspace\": {\"type\": \"string\"}, \"created\": {\"type\": \"number\"}, "
		    "\"idle\": {\"type\": \"number\"}, \"cells\": {\"type\": \"integer\"}, "
		    "\"queued\": {\"type\": \"integer\"}, \"pid\": {\"type\": \"integer\"}, "
		    "\"memory\": {\"type\": \"integer\"}, \"idle_left\": {\"type\": [\"number\", \"null\"]}, "
		    "\"hard_left\": {\"type\": [\"number\", \"null\"]}, \"level\": {\"type\": [\"string\", "
		    "\"null\"]}, \"python\": {\"type\": [\"string\", \"null\"]}, \"guards\": {\"type\": \"array\", "
		    "\"items\": {\"type\": \"string\"}}, "
		    "\"checkpoints\": {\"type\": \"integer\"}, \"checkpoint_memory\": {\"type\": \"integer\"}, "
		    "\"checkpoint_age\": {\"type\": \"number\"}, \"cpu\": {\"type\": \"number\"}, "
		    "\"birth\": {\"type\": \"integer\"}, \"disk\": {\"type\": \"integer\"}, "
		    "\"files\": {\"type\": \"integer\"}, \"tasks\": {\"type\": \"integer\"}, "
		    "\"memory_limit\": {\"type\": [\"integer\", \"null\"]}, "
		    "\"tasks_limit\": {\"type\": [\"integer\", \"null\"]}, "
		    "\"disk_limit\": {\"type\": [\"integer\", \"null\"]}, \"cpu_limit\": {\"type\": [\"number\", "
		    "\"null\"]}, \"cell_timeout\": {\"type\": [\"number\", \"null\"]}, "
		    "\"idle_ttl\": {\"type\": [\"number\", \"null\"]}, \"hard_ttl\": {\"type\": [\"number\", "
		    "\"null\"]}, \"opened\": {\"type\": \"boolean\"}, \"loaded\": {\"type\": [\"object\", "
		    "\"null\"]}, \"ended\": {\"type\": [\"object\", \"null\"]}, "
		    "\"effects\": {\"type\": \"array\", \"items\": {\"type\": \"object\"}}, "
		    "\"key\": {\"type\": \"string\"}}}"},
	{"Sessions", "{\"type\": \"object\", \"required\": [\"sessions\"], "
		     "\"properties\": {\"sessions\": {\"type\": \"array\", "
		     "\"items\": {\"$ref\": \"#/components/schemas/Session\"}}}}"},
	{"Interrupt",
	 "{\"type\": \"object\", \"additionalProperties\": false, "
	 "\"properties\": {\"kill\": {\"type\": \"boolean\", "
	 "\"description\": \"Also a cell that does not react. The session goes back to the state before it.\"}}}"},
	{"Interrupted", "{\"type\": \"object\", \"required\": [\"interrupted\"], "
			"\"properties\": {\"interrupted\": {\"type\": \"boolean\"}}}"},
	{"Reset", "{\"type\": \"object\", \"additionalProperties\": false, "
		  "\"properties\": {\"keep\": {\"type\": \"array\", \"items\": {\"type\": \"string\", "
		  "\"minLength\": 1, \"maxLength\": 128}, \"maxItems\": 1000}}}"},
	{"Input", "{\"type\": \"object\", \"additionalProperties\": false, "
		  "\"properties\": {\"text\": {\"type\": [\"string\", \"null\"], "
		  "\"description\": \"Without the newline at its end; absent: the end of the input.\"}}}"},
	{"Results", "{\"type\": \"object\", \"required\": [\"results\"], "
		    "\"properties\": {\"results\": {\"type\": \"array\", \"items\": {\"type\": \"object\"}}}}"},
	{"History", "{\"type\": \"object\", \"required\": [\"cells\"], "
		    "\"properties\": {\"cells\": {\"type\": \"array\", \"items\": {\"type\": \"object\"}}}}"},
	{"Checkpoints",
	 "{\"type\": \"object\", \"required\": [\"checkpoints\"], "
	 "\"properties\": {\"checkpoints\": {\"type\": \"array\", \"items\": {\"type\": \"object\"}}}}"},
	{"Checkpoint", "{\"type\": \"object\", \"additionalProperties\": false, "
		       "\"properties\": {\"name\": {\"type\": \"string\", \"minLength\": 1, \"maxLength\": 128}}}"},
	{"State", "{\"type\": \"object\", \"required\": [\"session\", \"cell\"], "
		  "\"properties\": {\"session\": {\"type\": \"string\"}, \"cell\": {\"type\": \"integer\"}, "
		  "\"name\": {\"type\": [\"string\", \"null\"]}, \"files\": {\"type\": \"array\", "
		  "\"items\": {\"type\": \"object\"}}, \"files_more\": {\"type\": \"integer\"}, "
		  "\"files_stay\": {\"type\": \"string\"}, \"effects\": {\"type\": \"array\", "
		  "\"items\": {\"type\": \"object\"}}, \"effects_more\": {\"type\": \"integer\"}}}"},
	{"Difference", "{\"type\": \"object\", \"required\": [\"since\", \"until\", \"files\", \"variables\"], "
		       "\"properties\": {\"session\": {\"type\": \"string\"}, \"since\": {\"type\": \"integer\"}, "
		       "\"until\": {\"type\": \"integer\"}, "
		       "\"files\": {\"type\": \"array\", \"items\": {\"type\": \"object\"}}, "
		       "\"variables\": {\"type\": \"array\", \"items\": {\"type\": \"object\"}}}}"},
	{"Restore", "{\"type\": \"object\", \"additionalProperties\": false, \"required\": [\"name\"], "
		    "\"properties\": {\"name\": {\"type\": \"string\", \"minLength\": 1, \"maxLength\": 128, "
		    "\"description\": \"Of a checkpoint, or the number of a cell.\"}, "
		    "\"keep_files\": {\"type\": \"boolean\"}}}"},
	{"Undo", "{\"type\": \"object\", \"additionalProperties\": false, "
		 "\"properties\": {\"n\": {\"type\": \"integer\", \"minimum\": 0, "
		 "\"maximum\": 9007199254740991, \"description\": \"0 is 1.\"}, "
		 "\"keep_files\": {\"type\": \"boolean\"}}}"},
	{"Branch", "{\"type\": \"object\", \"additionalProperties\": false, \"required\": [\"branch\"], "
		   "\"properties\": {\"branch\": {\"type\": \"string\", \"minLength\": 1, \"maxLength\": 128}, "
		   "\"from\": {\"type\": \"string\", \"minLength\": 1, \"maxLength\": 128, "
		   "\"description\": \"A checkpoint; absent: the present state.\"}, "
		   "\"files\": {\"type\": \"boolean\", \"description\": \"On copies of the files.\"}, "
		   "\"at_call\": {\"type\": \"boolean\"}}}"},
	{"Saved", "{\"type\": \"object\", \"required\": [\"size\", \"names\", \"refused\"], "
		  "\"properties\": {\"session\": {\"type\": \"string\"}, \"size\": {\"type\": \"integer\"}, "
		  "\"names\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}}, "
		  "\"refused\": {\"type\": \"array\", \"items\": {\"type\": \"object\"}}}}"},
	{"Loaded", "{\"type\": \"object\", \"properties\": {\"age\": {\"type\": \"number\"}, "
		   "\"names\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}}, "
		   "\"refused\": {\"type\": \"array\", \"items\": {\"type\": \"object\"}}, "
		   "\"ended\": {\"type\": [\"object\", \"null\"]}}}"},
	{"Save", "{\"type\": \"object\", \"required\": [\"session\", \"size\", \"count\"], "
		 "\"properties\": {\"session\": {\"type\": \"string\"}, \"uid\": {\"type\": \"integer\"}, "
		 "\"created\": {\"type\": \"number\"}, \"expires\": {\"type\": [\"number\", \"null\"]}, "
		 "\"size\": {\"type\": \"integer\"}, \"count\": {\"type\": \"integer\"}, "
		 "\"names\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}}, "
		 "\"refused\": {\"type\": \"array\", \"items\": {\"type\": \"object\"}}}}"},
	{"Saves", "{\"type\": \"object\", \"required\": [\"saves\"], "
		  "\"properties\": {\"saves\": {\"type\": \"array\", "
		  "\"items\": {\"$ref\": \"#/components/schemas/Save\"}}}}"},
	{"Variables", "{\"type\": \"object\", \"required\": [\"variables\", \"total\"], "
		      "\"properties\": {\"variables\": {\"type\": \"array\", \"items\": {\"type\": \"object\"}}, "
		      "\"total\": {\"type\": \"integer\"}, \"directory\": {\"type\": [\"string\", \"null\"]}}}"},
	{"Complete", "{\"type\": \"object\", \"additionalProperties\": false, \"required\": [\"code\"], "
		     "\"properties\": {\"code\": {\"type\": \"string\"}, \"cursor\": {\"type\": \"integer\", "
		     "\"minimum\": 0, \"maximum\": 9007199254740991, "
		     "\"description\": \"Characters before the cursor; 0: all.\"}}}"},
	{"Completions", "{\"type\": \"object\", \"required\": [\"matches\", \"start\", \"end\"], "
			"\"properties\": {\"matches\": {\"type\": \"array\", \"items\": {\"type\": \"object\"}}, "
			"\"start\": {\"type\": \"integer\"}, \"end\": {\"type\": \"integer\"}}}"},
	{"Inspect", "{\"type\": \"object\", \"additionalProperties\": false, \"required\": [\"code\"], "
		    "\"properties\": {\"code\": {\"type\": \"string\"}, \"cursor\": {\"type\": \"integer\", "
		    "\"minimum\": 0, \"maximum\": 9007199254740991}, \"source\": {\"type\": \"boolean\"}}}"},
	{"Inspection",
	 "{\"type\": \"object\", \"required\": [\"found\"], "
	 "\"properties\": {\"found\": {\"type\": \"boolean\"}, \"name\": {\"type\": [\"string\", "
	 "\"null\"]}, \"type\": {\"type\": [\"string\", \"null\"]}, "
	 "\"signature\": {\"type\": [\"string\", \"null\"]}, \"docstring\": {\"type\": [\"string\", "
	 "\"null\"]}, \"text\": {\"type\": [\"string\", \"null\"]}, \"file\": {\"type\": [\"string\", "
	 "\"null\"]}, \"line\": {\"type\": [\"integer\", \"null\"]}, "
	 "\"source\": {\"type\": [\"string\", \"null\"]}}}"},
	{"Stray", "{\"type\": \"object\", \"required\": [\"stdout\", \"stderr\", \"at\"], "
		  "\"properties\": {\"stdout\": {\"type\": [\"string\", \"null\"]}, "
		  "\"stderr\": {\"type\": [\"string\", \"null\"]}, \"at\": {\"type\": \"integer\"}}}"},
	{"Code", "{\"type\": \"object\", \"additionalProperties\": false, \"required\": [\"code\"], "
		 "\"properties\": {\"code\": {\"type\": \"string\"}, \"session\": {\"type\": \"string\", "
		 "\"minLength\": 1, \"maxLength\": 128}, \"profile\": {\"type\": \"string\", "
		 "\"minLength\": 1, \"maxLength\": 128}}}"},
	{"Checked", "{\"type\": \"object\", \"required\": [\"valid\"], "
		    "\"properties\": {\"valid\": {\"type\": \"boolean\"}, \"error\": {\"type\": [\"string\", "
		    "\"null\"]}, \"line\": {\"type\": [\"integer\", \"null\"]}, "
		    "\"offset\": {\"type\": [\"integer\", \"null\"]}, \"context\": {\"type\": [\"string\", "
		    "\"null\"]}, \"rule\": {\"type\": [\"string\", \"null\"]}}}"},
	{"Completeness", "{\"type\": \"object\", \"required\": [\"status\"], "
			 "\"properties\": {\"status\": {\"type\": \"string\"}, \"indent\": {\"type\": [\"string\", "
			 "\"null\"]}}}"},
	{"Calls", "{\"type\": \"object\", \"required\": [\"calls\", \"more\", \"seen\"], "
		  "\"properties\": {\"calls\": {\"type\": \"array\", \"items\": {\"type\": \"object\"}}, "
		  "\"more\": {\"type\": \"integer\"}, "
		  "\"seen\": {\"type\": \"string\", \"description\": \"For the next request with wait.\"}}}"},
	{"Answer", "{\"type\": \"object\", \"description\": \"One of value, error and approve.\", "
		   "\"additionalProperties\": false, "
		   "\"properties\": {\"value\": {\"description\": \"Of the call; any JSON.\"}, "
		   "\"error\": {\"type\": \"string\", \"minLength\": 1, \"maxLength\": 128, "
		   "\"description\": \"The name of an exception; PermissionError is a refusal.\"}, "
		   "\"text\": {\"type\": \"string\"}, \"approve\": {\"type\": \"boolean\"}, "
		   "\"cell\": {\"type\": \"integer\", \"minimum\": 0, \"maximum\": 9007199254740991}}}"},
	{"Files", "{\"type\": \"object\", \"required\": [\"files\", \"next\"], "
		  "\"properties\": {\"files\": {\"type\": \"array\", \"items\": {\"type\": \"object\"}}, "
		  "\"next\": {\"type\": [\"integer\", \"null\"]}}}"},
	{"Written", "{\"type\": \"object\", \"required\": [\"path\", \"size\"], "
		    "\"properties\": {\"path\": {\"type\": \"string\"}, \"size\": {\"type\": \"integer\"}}}"},
	{"Function", "{\"type\": \"object\", \"additionalProperties\": false, \"required\": [\"name\"], "
		     "\"properties\": {\"name\": {\"type\": \"string\", \"minLength\": 1, \"maxLength\": 128}, "
		     "\"doc\": {\"type\": \"string\"}, \"schema\": {\"type\": \"object\", "
		     "\"description\": \"JSON Schema of the arguments.\"}, \"returns\": {\"type\": \"object\"}, "
		     "\"effect\": {\"type\": \"boolean\"}, \"ask\": {\"type\": \"boolean\"}, "
		     "\"caution\": {\"type\": \"boolean\"}, \"timeout\": {\"type\": \"number\", \"minimum\": 0, "
		     "\"maximum\": 1000000000}}}"},
};
const size_t n_schemas = ARRAY_SIZE(schemas);
