// It tells no server that it does not wait any more, but ends the server: that is what interrupts the cell. The next
// server goes on with the session because it is named.
import { createMCPClient } from '@ai-sdk/mcp';
import { Experimental_StdioMCPTransport as Stdio } from '@ai-sdk/mcp/mcp-stdio';
import { SERVER, scenario } from './scenario.mjs';

let client, tools;

async function connect() {
	client = await createMCPClient({ transport: new Stdio({ ...SERVER, args: ['mcp', '--session', 'talk'] }) });
	tools = await client.tools();
}

await connect();
await scenario({
	tools: async () => Object.keys(tools),
	call: (code) => tools.python_session_execute.execute({ code }, { messages: [], toolCallId: 'call' }),
	stop: async () => {
		await client.close();
		await connect();
	},
	hasProgress: false,
});
await client.close();
