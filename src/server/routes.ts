// server/routes.ts: every address of the API.
import { ABOUT_ROUTES } from './routes-about.ts';
import { CHANGE_ROUTES } from './routes-changes.ts';
import type { Route } from './route.ts';
import { TASK_ROUTES } from './routes-tasks.ts';

export const ROUTES: readonly Route[] = [...ABOUT_ROUTES, ...TASK_ROUTES, ...CHANGE_ROUTES];
