/** @file Tests of mail: node --test */

import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';

import { Context, InitContext } from '#plugd-sdk';
import { Host } from '#plugd-sdk/testing';

import plugin, { openOutbox, send } from './mail.js';

const MAIL = { to: 'ada@example.org', subject: 'Meeting', body: 'It is at three.' };

let folder;
beforeEach(() => (folder = fs.mkdtempSync(path.join(os.tmpdir(), 'mail-'))));
afterEach(() => fs.rmSync(folder, { recursive: true }));

test('a mail is in the outbox once it is sent', () => {
  const state = openOutbox({}, InitContext.forTest({ dataDir: folder }));
  const { data } = send(MAIL, Context.forTest({ state }));
  const [name] = fs.readdirSync(path.join(folder, 'outbox'));
  assert.equal(name, `${data.id}.json`);
  const { subject, body } = JSON.parse(fs.readFileSync(path.join(folder, 'outbox', name), 'utf8'));
  assert.deepEqual([subject, body], [MAIL.subject, MAIL.body]);
});

test('under a key a mail is sent once, also by the next run', async () => {
  const sent = (options) => new Host(plugin, { dataDir: folder }).call('send', MAIL, options);
  const first = await sent({ idempotencyKey: 'meeting-7' });
  const again = await sent({ idempotencyKey: 'meeting-7' });
  assert.equal(again.data.id, first.data.id);
  assert.match(again.summary, /was sent before/);
  assert.notEqual((await sent({ idempotencyKey: 'meeting-7', caller: 'bob' })).data.id, first.data.id);
  assert.notEqual((await sent()).data.id, (await sent()).data.id);
  const { data } = await new Host(plugin, { dataDir: folder }).call('list_sent');
  assert.equal(data.length, 4);
});

test('a mail that says nothing is not sent', async () => {
  const host = new Host(plugin, { dataDir: folder });
  const { error } = await host.call('send', { to: MAIL.to, subject: ' ', body: '' });
  assert.deepEqual([error.name, error.hint], ['empty_mail', 'give a subject or a body']);
  assert.deepEqual((await host.call('list_sent')).data, []);
});
