/** @file Tests of the plugin: node --test */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Host } from '#plugd-sdk/testing';

import plugin from './plugin.js';

test('somebody is greeted by name', async () => {
  const reply = await new Host(plugin).call('hello', { name: ' Ada ' });
  assert.equal(reply.data, 'Hello, Ada!');
});

test('nobody is not greeted', async () => {
  const reply = await new Host(plugin).call('hello', { name: ' ' });
  assert.equal(reply.error?.name, 'nobody_to_greet');
});
