// In the era that the argument names: legacy, or auto, which is the stateless one if the server knows it.
import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { SERVER, scenario } from './scenario.mjs';

const mode = process.argv[2];
const client = new Client({ name: 'test', version: '0' }, { versionNegotiation: { mode } });
await client.connect(new StdioClientTransport(SERVER));
await scenario({
	tools: async () => (await client.listTools()).tools.map((tool) => tool.name),
	call: (code, { signal, progress }) =>
		client.callTool(
			{ name: 'python_session_execute', arguments: { code, session_id: mode } },
			{ signal, onprogress: progress && (({ message }) => progress(message)) },
		),
});
const era = mode === 'auto' ? '2026-07-28' : '2025-11-25';
assert.equal(client.getNegotiatedProtocolVersion(), era);
await client.close();
