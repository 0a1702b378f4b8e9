// server/routes/openapi.ts: the API as an OpenAPI 3.1 document, generated from the routes and their schemas.
import { z } from 'zod';
import * as api from '../../protocol/api/api.ts';
import * as review from '../../protocol/api/review.ts';
import type { Route } from './route.ts';

type Json = Readonly<Record<string, unknown>>;

/** Schemas keep their export names in the document. */
const NAMED = new Map<unknown, string>(
  Object.entries({ ...api, ...review }).flatMap(([name, value]) =>
    value instanceof z.ZodType ? [[value, name] as const] : [],
  ),
);

export function openApiDocument(routes: readonly Route[], version: string): Json {
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) (paths[route.path] ??= {})[route.method.toLowerCase()] = operation(route);
  return {
    openapi: '3.1.0',
    info: {
      title: 'ags',
      version,
      description:
        'Tasks of agents on this machine. Scripts send the key of <state directory>/server/key. Live: WebSocket /api/live (LiveRequest, LiveMessage), or GET /api/events as server-sent events. Terminal of a task: WebSocket /api/tasks/{task}/terminal.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: 'http://127.0.0.1:7780' }],
    security: [{ key: [] }, { session: [] }],
    paths: { ...paths, '/api/events': { get: LIVE_STREAM } },
    components: {
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer' },
        session: { type: 'apiKey', in: 'cookie', name: 'ags' },
      },
      schemas: Object.fromEntries(
        [...NAMED]
          .toSorted(([, a], [, b]) => (a < b ? -1 : 1))
          .map(([schema, name]) => [name, schemaOf(schema as z.ZodType, 'input', name)]),
      ),
    },
  };
}

function operation(route: Route): Json {
  const ids = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const query = Object.entries(route.query ?? {}).map(([name, description]) => ({
    name,
    in: 'query',
    description,
    schema: { type: 'string' },
  }));
  const parameters = [...ids, ...query];
  return {
    operationId: `${route.method.toLowerCase()}${route.path
      .replace('/api', '')
      .replaceAll(/[/{}]+(\w)/g, (_, first: string) => first.toUpperCase())
      .replaceAll(/[{}]/g, '')}`,
    summary: route.summary,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(route.body === undefined ? {} : { requestBody: { content: content(route.body, 'input') } }),
    responses: {
      200: { description: 'Done.', content: content(route.answer, 'output') },
      default: { description: 'Refused, with the reason.', content: content(api.ApiError, 'output') },
    },
  };
}

function content(schema: z.ZodType, io: 'input' | 'output'): Json {
  const name = NAMED.get(schema);
  return {
    'application/json': {
      schema: name === undefined ? schemaOf(schema, io, null) : { $ref: `#/components/schemas/${name}` },
    },
  };
}

/** Nested schemas are written inline. */
function schemaOf(schema: z.ZodType, io: 'input' | 'output', title: string | null): Json {
  const { $schema: _dialect, ...json } = z.toJSONSchema(schema, {
    io,
    target: 'draft-2020-12',
    unrepresentable: 'any',
  });
  return { ...(title === null ? {} : { title }), ...json };
}

const LIVE_STREAM: Json = {
  operationId: 'getEvents',
  summary: 'Topics as server-sent events; continues after "after" or Last-Event-ID',
  parameters: [
    {
      name: 'topics',
      in: 'query',
      description: 'Comma-separated: tasks, projects, task:<id>, network:<id>.',
      schema: { type: 'string', default: 'tasks' },
    },
    {
      name: 'after',
      in: 'query',
      description: 'Continue after this number; for several topics one number each, separated by dots, "-" for none.',
      schema: { type: 'string' },
    },
  ],
  responses: {
    200: {
      description: 'Every "data" is a LiveMessage.',
      content: { 'text/event-stream': { schema: { $ref: '#/components/schemas/LiveMessage' } } },
    },
  },
};
