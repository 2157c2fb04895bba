/** @file The loop that one would write without an SDK: reads a line, parses it, builds the answer, writes it. */

import { createInterface } from 'node:readline';

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, params } = JSON.parse(line);
  const answer = { jsonrpc: '2.0', id, result: { data: params.arguments.payload } };
  process.stdout.write(`${JSON.stringify(answer)}\n`);
});
