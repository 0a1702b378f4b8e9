// web/src/router.tsx: the routes. Every page but the task list is loaded on demand.
import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from '@tanstack/react-router';
import { Shell } from './shell/shell.tsx';
import { LastProject } from './shell/last-project.tsx';
import { NotFound, PageFailure } from './shell/page-failure.tsx';
import { TasksPage } from './tasks/page.tsx';

const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : typeof value === 'number' ? String(value) : undefined;

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound, errorComponent: PageFailure });
const under = { getParentRoute: () => root };

const routes = [
  createRoute({ ...under, path: '/', component: LastProject }),
  createRoute({
    ...under,
    path: '/p/$project',
    component: TasksPage,
    validateSearch: (search): { q?: string | undefined } => ({ q: text(search['q']) }),
  }),
  createRoute({
    ...under,
    path: '/p/$project/t/$task',
    component: lazyRouteComponent(async () => import('./task/page.tsx'), 'TaskPage'),
    validateSearch: (search): { show?: string | undefined; panel?: string | undefined } => ({
      show: text(search['show']),
      panel: text(search['panel']),
    }),
  }),
  createRoute({
    ...under,
    path: '/p/$project/t/$task/changes',
    component: lazyRouteComponent(async () => import('./review/page.tsx'), 'ReviewPage'),
    validateSearch: (
      search,
    ): { file?: string | undefined; line?: string | undefined; layout?: string | undefined } => ({
      file: text(search['file']),
      line: text(search['line']),
      layout: text(search['layout']),
    }),
  }),
  createRoute({
    ...under,
    path: '/p/$project/compare/$a/$b',
    component: lazyRouteComponent(async () => import('./compare/page.tsx'), 'ComparePage'),
    validateSearch: (search): { file?: string | undefined; show?: string | undefined } => ({
      file: text(search['file']),
      show: text(search['show']),
    }),
  }),
  createRoute({
    ...under,
    path: '/p/$project/network',
    component: lazyRouteComponent(async () => import('./network/page.tsx'), 'NetworkPage'),
    validateSearch: (search): { show?: string | undefined; task?: string | undefined } => ({
      show: text(search['show']),
      task: text(search['task']),
    }),
  }),
  createRoute({
    ...under,
    path: '/settings',
    component: lazyRouteComponent(async () => import('./settings/page.tsx'), 'SettingsPage'),
  }),
] as const;

export const router = createRouter({ routeTree: root.addChildren(routes), defaultPreload: 'intent' });

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
