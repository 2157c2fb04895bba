/** @file The same echo as a tool of the official MCP SDK, served over stdio. */

import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

serveStdio(() => {
  const server = new McpServer({ name: 'echo', version: '1.0.0' });
  const inputSchema = z.object({ payload: z.string() });
  server.registerTool('echo', { description: 'Gives its text back.', inputSchema }, ({ payload }) => ({
    content: [{ type: 'text', text: payload }],
  }));
  return server;
});
