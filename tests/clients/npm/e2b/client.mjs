// E2B's SDK, unmodified, with a `lair serve` instead of E2B: its address is in the environment. The first argument is what to try.
import assert from 'node:assert/strict';
import { CommandExitError, NotFoundError, Sandbox, TimeoutError } from '@e2b/code-interpreter';

async function until(what) {
	for (let i = 0; i < 600; i++) {
		const found = await what();
		if (found) return found;
		await new Promise((resolve) => setTimeout(resolve, 50));
	}
	throw new Error('it has not come');
}

async function withSandbox(use, options = {}) {
	const it = await Sandbox.create({ timeoutMs: 120_000, ...options });
	try {
		await use(it);
	} finally {
		await it.kill();
	}
}

const tried = {
	async sandboxes() {
		await withSandbox(
			async (it) => {
				assert.equal(await it.isRunning(), true);
				assert.equal((await it.runCode("import os; os.environ['NAME']")).text, 'anna');
				const [found] = await Sandbox.list({ query: { metadata: { who: 'ä&b' } } }).nextItems();
				assert.equal(found.sandboxId, it.sandboxId);
				await it.runCode('y = 5');
				assert.equal((await (await Sandbox.connect(it.sandboxId)).runCode('y')).text, '5');
				assert.deepEqual((await it.getInfo()).metadata, { who: 'ä&b' });
				await it.pause();
				assert.equal((await it.getInfo()).state, 'paused');
				assert.equal((await (await Sandbox.connect(it.sandboxId)).runCode('y')).text, '5');
			},
			{ metadata: { who: 'ä&b' }, envs: { NAME: 'anna' } },
		);
		const short = await Sandbox.create({ timeoutMs: 1000 });
		await until(async () => !(await short.isRunning()));
		await assert.rejects(Sandbox.connect(short.sandboxId), NotFoundError);
		assert.equal(await Sandbox.kill(short.sandboxId), false);
	},

	async cells() {
		await withSandbox(async (it) => {
			const heard = [];
			const done = await it.runCode("print('h\\u00e9\\u2028llo 🐍')\nimport sys; print('err', file=sys.stderr)\n'quoted'", {
				onStdout: (message) => heard.push(message.line),
				onStderr: (message) => heard.push(message.line),
				onResult: (result) => heard.push(result.text),
			});
			assert.deepEqual(heard, ['h\u00e9\u2028llo 🐍\n', 'err\n', 'quoted']);
			assert.equal(done.text, 'quoted');
			const lines = await it.runCode("for i in range(100_000): print(f'{i:099}')");
			assert.equal(lines.logs.stdout.join('').length, 10_000_000);
			assert.equal((await it.runCode('done;')).results.length + (await it.runCode('5;')).results.length, 0);
			assert.equal((await it.runCode('raise SystemExit(3)')).error.name, 'SystemExit');
			const { error } = await it.runCode('1 / 0');
			assert.equal(error.name, 'ZeroDivisionError');
			assert.match(error.traceback, /1 \/ 0/);
			assert.equal((await it.runCode("os.getenv('A')", { envs: { A: '1' } })).error.name, 'NameError');
			assert.equal((await it.runCode("import os; os.getenv('A')", { envs: { A: '1' } })).text, '1');
			await assert.rejects(it.runCode('import time; time.sleep(100)', { timeoutMs: 1000 }), TimeoutError);
			assert.deepEqual((await it.runCode("{'a': [1, 2]}")).results[0].json, { a: [1, 2] });
			assert.deepEqual((await it.runCode('echo $((6 * 7))', { language: 'bash' })).logs.stdout, ['42\n']);
			const context = await it.createCodeContext({ cwd: '/home/user/sub' });
			assert.ok((await it.runCode('os', { context })).error);
			await it.runCode('x = 2', { context });
			await it.restartCodeContext(context);
			assert.ok((await it.runCode('x', { context })).error);
			assert.ok((await it.listCodeContexts()).some((each) => each.id === context.id));
			await it.removeCodeContext(context);
		});
	},

	async files() {
		await withSandbox(async (it) => {
			const content = 'ä'.repeat(500_000);
			assert.equal((await it.files.write('a/b', content)).path, '/home/user/a/b');
			assert.equal(await it.files.read('/home/user/a/b'), content);
			await it.files.write('packed', content, { gzip: true });
			assert.equal(await it.files.read('packed', { gzip: true }), content);
			const many = Array.from({ length: 500 }, (_, i) => ({ path: `many/${i}`, data: `${i}` }));
			assert.equal((await it.files.writeFiles(many)).length, 500);
			assert.equal(await it.files.read('many/499'), '499');
			await it.files.remove('many');
			await it.files.write([{ path: 'one', data: '1' }, { path: 'two', data: new Blob(['22']) }]);
			assert.equal((await it.runCode("open('two').read()")).text, '22');
			let size = 0;
			for await (const piece of await it.files.read('a/b', { format: 'stream' })) size += piece.length;
			assert.equal(size, 1_000_000);
			assert.deepEqual((await it.files.list('.')).map((each) => each.name), ['a', 'one', 'packed', 'two']);
			assert.equal((await it.files.rename('one', 'd/moved')).path, '/home/user/d/moved');
			assert.equal(await it.files.makeDir('d'), false);
			await it.files.remove('d');
			assert.equal(await it.files.exists('d'), false);
			await assert.rejects(it.files.read('none'), NotFoundError);
			const url = await it.downloadUrl('two', { useSignatureExpiration: 60 });
			assert.equal(await (await fetch(url)).text(), '22');
			const seen = [];
			await it.files.makeDir('w');
			const watcher = await it.files.watchDir('w', (event) => seen.push(event));
			await it.files.write('w/new', '1');
			assert.equal((await until(() => seen[0])).name, 'new');
			await watcher.stop();
		});
	},

	async commands() {
		await withSandbox(
			async (it) => {
				await it.files.write('f', 'content');
				const done = await it.commands.run('cat f; echo $A$B; echo err >&2', { envs: { B: '2' } });
				assert.deepEqual([done.stdout, done.stderr, done.exitCode], ['content12\n', 'err\n', 0]);
				await assert.rejects(it.commands.run('exit 7'), (error) => error instanceof CommandExitError && error.exitCode === 7);
				const echo = await it.commands.run('cat', { background: true, stdin: true });
				assert.deepEqual((await it.commands.list()).map((each) => each.pid), [echo.pid]);
				await it.commands.sendStdin(echo.pid, 'line\n');
				await it.commands.closeStdin(echo.pid);
				assert.equal((await echo.wait()).stdout, 'line\n');
				const loop = await it.commands.run('while sleep 0.05; do echo tick; done', { background: true, timeoutMs: 0 });
				const again = await it.commands.connect(loop.pid);
				await until(() => again.stdout);
				assert.equal(await loop.kill(), true);
				await assert.rejects(loop.wait(), CommandExitError);
				await assert.rejects(it.commands.run('sleep 100', { timeoutMs: 1000 }), TimeoutError);
			},
			{ envs: { A: '1' } },
		);
	},

	async terminal() {
		await withSandbox(async (it) => {
			let shown = '';
			const onData = (data) => (shown += Buffer.from(data).toString());
			const type = (pid, text) => it.pty.sendInput(pid, Buffer.from(text));
			const shell = await it.pty.create({ cols: 80, rows: 24, onData, envs: { SAID: 'hello' } });
			await type(shell.pid, 'stty size; echo $SAID $TERM\n');
			await until(() => shown.includes('hello xterm') && shown.includes('24 80'));
			await it.pty.resize(shell.pid, { cols: 100, rows: 30 });
			await type(shell.pid, 'stty size; exit 3\n');
			await assert.rejects(shell.wait(), (error) => error instanceof CommandExitError && error.exitCode === 3);
			assert.match(shown, /30 100/);
			const other = await it.pty.create({ cols: 80, rows: 24, onData: () => {} });
			assert.equal(await it.pty.kill(other.pid), true);
			await assert.rejects(other.wait(), CommandExitError);
		});
	},

	async killed() {
		const it = await Sandbox.create({ timeoutMs: 120_000 });
		const running = it.runCode('import time; time.sleep(100)', { timeoutMs: 100_000 });
		setTimeout(() => it.kill(), 1000);
		await assert.rejects(running, (error) => error instanceof TimeoutError && /killed/.test(error.message));
		assert.equal(await it.isRunning(), false);
	},
};

await tried[process.argv[2]]();
