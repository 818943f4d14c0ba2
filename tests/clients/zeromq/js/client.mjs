// A socket of zeromq.js: sends each line of stdin, in hexadecimal, and prints what comes back.
import readline from 'node:readline';
import * as zmq from 'zeromq';

const [endpoint, kind] = process.argv.slice(2);
const socket = kind === 'REQ' ? new zmq.Request({ linger: 0 }) : new zmq.Dealer({ linger: 0 });
socket.connect(endpoint);
for await (const line of readline.createInterface({ input: process.stdin })) {
	await socket.send(Buffer.from(line, 'hex'));
	const parts = await socket.receive();
	console.log(parts.map((part) => part.toString('hex')).join(' '));
}
socket.close();
