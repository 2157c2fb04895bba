/** @file What every SDK makes alike: the golden plugin's manifest, and all conversations with it. */

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { mock, test } from 'node:test';

import { parse, stringify } from '../src/json.js';
import { running } from '../src/plugin.js';
import { Session } from '../src/session.js';
import { Child } from './child.js';
import golden from './golden.js';
import { Lines, withinPatience } from './lines.js';

const WIRE = new URL('../../../protocol/wire/sdk/', import.meta.url);

/** Sessions are played in both ways: within this process, and with one of its own. */
const CONNECTIONS = { 'in memory': () => new InMemory(golden), 'as a process': () => new Child('golden.js') };

/** A plugin in this process, seen as a process is. */
class InMemory {
  out = new Lines();

  constructor(plugin) {
    this.exited = withinPatience(
      'its end',
      new Promise((resolve) => {
        this.session = new Session(running(plugin), { write: (line) => this.out.push(line), leave: () => resolve(0) });
      }),
    );
  }

  send(line) {
    this.session.receive(Buffer.from(`${line}\n`));
  }

  close() {
    void this.session.end();
  }
}

/** Whether a message is as wanted; what `$name` stands for is learnt. */
function fits(wanted, got, names) {
  if (wanted === '*') return true;
  if (typeof wanted === 'string' && wanted.startsWith('$')) {
    names[wanted] = got;
    return true;
  }
  if (wanted === null || typeof wanted !== 'object') return wanted === got;
  const keys = Object.keys(wanted);
  return (
    got !== null &&
    typeof got === 'object' &&
    Object.keys(got).length === keys.length &&
    keys.every((key) => key in got && fits(wanted[key], got[key], names))
  );
}

/** Takes each wanted message out of those that come, in any order. */
async function expectAll(wanted, connection, names) {
  const left = [...wanted];
  while (left.length > 0) {
    const line = await connection.out.next();
    const at = left.findIndex((message) => fits(message, parse(line), names));
    assert.notEqual(at, -1, `expected one of ${stringify(left)}, got ${line}`);
    left.splice(at, 1);
  }
}

async function play(name, connection) {
  const names = {};
  const lines = fs
    .readFileSync(new URL(`sessions/${name}`, WIRE), 'utf8')
    .trim()
    .split('\n');
  for (const step of lines.map(parse)) {
    if (step.send) {
      connection.send(stringify(step.send).replace(/"(\$\w+)"/g, (_, known) => stringify(names[`$${known.slice(1)}`])));
    } else if (step.expect) {
      await expectAll([step.expect], connection, names);
    } else if (step.expect_all) {
      await expectAll(step.expect_all, connection, names);
    } else if (step.close) {
      connection.close();
    } else {
      assert.equal(await connection.exited, step.exit);
    }
  }
  assert.deepEqual(connection.out.left, []);
}

test('the golden plugin declares what it does in every language', () => {
  const wanted = JSON.parse(fs.readFileSync(new URL('manifest.json', WIRE), 'utf8'));
  assert.deepEqual(JSON.parse(JSON.stringify(golden.manifest())), wanted);
});

const sessions = fs.readdirSync(new URL('sessions/', WIRE));
assert.ok(sessions.length >= 5, 'the sessions are there');
for (const [way, connect] of Object.entries(CONNECTIONS)) {
  for (const name of sessions) {
    // In memory the plugin has the test's own standard streams, which are not to be used up.
    if (way === 'in memory' && name === 'beside.jsonl') continue;
    test(`the session ${name} goes as in every language, ${way}`, async () => {
      if (way === 'in memory') mock.method(process.stderr, 'write', () => true);
      await play(name, connect());
      mock.restoreAll();
    });
  }
}
