// server/routes/routes.ts: all routes of the API.
import { z } from 'zod';
import { ABOUT_ROUTES } from './about.ts';
import { CHANGE_ROUTES } from './changes.ts';
import { CHECK_ROUTES } from './checks.ts';
import { NETWORK_ROUTES } from './network.ts';
import { openApiDocument } from './openapi.ts';
import { route, type Route } from './route.ts';
import { SERVICE_ROUTES } from './services.ts';
import { TASK_ROUTES } from './tasks.ts';

const API: readonly Route[] = [
  ...ABOUT_ROUTES,
  ...TASK_ROUTES,
  ...CHANGE_ROUTES,
  ...CHECK_ROUTES,
  ...SERVICE_ROUTES,
  ...NETWORK_ROUTES,
];

/** All routes, and the one that serves the OpenAPI document. */
export const ROUTES: readonly Route[] = [
  ...API,
  route({
    method: 'GET',
    path: '/api/openapi.json',
    summary: 'This document',
    answer: z.looseObject({}),
    run: async ({ version }) => openApiDocument(ROUTES, version),
  }),
];
