"""Lair for agent frameworks, one module each, which imports its framework:

openai_agents   function tools of the OpenAI Agents SDK
pydantic_ai     a toolset of Pydantic AI
langchain       tools of LangChain and LangGraph
smolagents      a PythonExecutor of smolagents
autogen         a CodeExecutor of AutoGen
google_adk      a code executor of Google's ADK
"""
