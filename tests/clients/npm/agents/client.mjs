import { MCPServerStdio } from '@openai/agents';
import { SERVER, scenario } from './scenario.mjs';

const server = new MCPServerStdio({ ...SERVER, name: 'lair', clientSessionTimeoutSeconds: 60 });
await server.connect();
await scenario({
	tools: async () => (await server.listTools()).map((tool) => tool.name),
	call: (code, { signal }) => server.callToolResult('python_session_execute', { code }, null, { signal }),
	hasProgress: false,
});
await server.close();
