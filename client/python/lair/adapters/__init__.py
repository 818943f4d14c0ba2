"""Lair for agent frameworks, one module each, which imports its framework. The first four also say how a tool of the
framework becomes a function that cells may call: `functions=[tool]` is enough. For tools of MCP servers it is
`functions=await lair.adapters.mcp.functions(client)`.

openai_agents   function tools of the OpenAI Agents SDK
pydantic_ai     a toolset of Pydantic AI
langchain       tools of LangChain and LangGraph
smolagents      a PythonExecutor of smolagents
autogen         a CodeExecutor of AutoGen
google_adk      a code executor of Google's ADK
mcp             functions of a session with an MCP server
"""
