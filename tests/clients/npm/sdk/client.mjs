import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { SERVER, scenario } from './scenario.mjs';

const client = new Client({ name: 'test', version: '0' });
await client.connect(new StdioClientTransport(SERVER));
await scenario({
	tools: async () => (await client.listTools()).tools.map((tool) => tool.name),
	call: (code, { signal, progress }) =>
		client.callTool({ name: 'python_session_execute', arguments: { code } }, undefined, {
			signal,
			onprogress: progress && (({ message }) => progress(message)),
		}),
});

const session = 'resources';
const written = await client.callTool({
	name: 'python_session_execute',
	arguments: { code: "open('a b.txt', 'w').write('text')", session_id: session },
});
const link = written.content.find((item) => item.type === 'resource_link');
assert.equal((await client.readResource({ uri: link.uri })).contents[0].text, 'text');
assert.ok((await client.listResources()).resources.some((resource) => resource.uri === link.uri));
assert.equal((await client.listResourceTemplates()).resourceTemplates.length, 1);
await client.close();
