/** @file The same loop with blocking reads and writes: the fastest that we found in Node, and deaf to all else. */

import fs from 'node:fs';

const buffer = Buffer.allocUnsafe(64 * 1024);
let rest = '';
for (;;) {
  const length = fs.readSync(0, buffer);
  if (length === 0) break;
  // Of a payload that is ASCII, so that no character is cut in two.
  const lines = (rest + buffer.toString('utf8', 0, length)).split('\n');
  rest = lines.pop();
  for (const line of lines) {
    const { id, params } = JSON.parse(line);
    const answer = { jsonrpc: '2.0', id, result: { data: params.arguments.payload } };
    fs.writeSync(1, `${JSON.stringify(answer)}\n`);
  }
}
