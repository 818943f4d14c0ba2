// The inspector's command line starts a server for each call: a session that is named is the same for all of them.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { LAIR, scenario } from './scenario.mjs';

const PROGRAM = new URL('node_modules/.bin/mcp-inspector', import.meta.url).pathname;

async function inspector(args, signal) {
	const child = spawn(PROGRAM, ['--cli', LAIR, 'mcp', '--session', 'inspected', '-e', `LAIR_SOCKET=${process.env.LAIR_SOCKET}`, ...args], {
		signal,
		stdio: ['ignore', 'pipe', 'pipe'],
	});
	let [out, err] = ['', ''];
	child.stdout.on('data', (data) => (out += data));
	child.stderr.on('data', (data) => (err += data));
	const [status] = await once(child, 'close');
	assert.ok(out, `status ${status}: ${err}`);
	return { status, ...JSON.parse(out) };
}

const call = (pair, signal) =>
	inspector(['--method', 'tools/call', '--tool-name', 'python_session_execute', '--tool-arg', pair], signal);

await scenario({
	tools: async () => {
		const listed = await inspector(['--strict', '--method', 'tools/list']);
		assert.equal(listed.status, 0, 'its schemas are not portable');
		return listed.tools.map((tool) => tool.name);
	},
	call: (code, { signal }) => call(`code=${code}`, signal),
	hasProgress: false,
});

// It makes numbers of what looks like one.
const coerced = await call('code=1');
assert.equal(coerced.isError, true);
assert.match(coerced.content[0].text, /code must be a string/);
