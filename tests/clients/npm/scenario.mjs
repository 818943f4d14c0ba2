// What every client does with lair mcp. A driver gives:
//   tools()                        the names of the tools
//   call(code, {signal, progress}) the result of python_session_execute; progress is called with each message
// and says what its client has no way to do, or does in a way of its own.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';

export const LAIR = `${process.env.LAIR_BIN}/lair`;
export const SERVER = { command: LAIR, args: ['mcp'], env: { LAIR_SOCKET: process.env.LAIR_SOCKET, PATH: process.env.PATH } };

export async function scenario({ tools, call, hasProgress = true, stop = (stopper) => stopper.abort() }) {
	const run = async (code, options = {}) => {
		const result = await call(code, options);
		const first = result.content[0];
		return { ...result, says: JSON.parse(first.text) };
	};

	const names = await tools();
	for (const name of ['python_execute_once', 'python_session_execute', 'check_syntax'])
		assert.ok(names.includes(name), `no ${name} in ${names}`);

	assert.equal((await run('x = 41')).says.ok, true);
	assert.equal((await run('x + 1')).says.text, '42');

	const failed = await run('1 / 0');
	assert.equal(failed.says.error.name, 'ZeroDivisionError');
	assert.equal(failed.says.state, 'kept');

	const figure = await run('import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()');
	const image = figure.content.find((item) => item.type === 'image');
	assert.equal(image.mimeType, 'image/png');
	assert.equal(Buffer.from(image.data, 'base64').toString('latin1', 1, 4), 'PNG');

	if (hasProgress) {
		const said = [];
		await run("import time\nfor i in range(3):\n    print('step', i)\n    time.sleep(0.3)", {
			progress: (message) => said.push(message),
		});
		assert.match(said.join(''), /step 0\nstep 1\n/);
	}

	const stopper = new AbortController();
	const stopped = assert.rejects(call('import time; time.sleep(50)', { signal: stopper.signal }));
	await sleep(500);
	await stop(stopper);
	await stopped;
	const began = Date.now();
	assert.equal((await run('x')).says.text, '41');
	assert.ok(Date.now() - began < 20_000, 'the cell was not interrupted');

	const { pid } = JSON.parse(execFileSync(LAIR, ['status', '--json']));
	process.kill(pid, 'SIGKILL');
	assert.equal((await run('x + 1')).says.text, '42');
}
