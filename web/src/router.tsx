// web/src/router.tsx: the routes, and the pages for `/`, unknown addresses and crashes. Every page but the task list is loaded on demand.
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Navigate,
  Link,
  type ErrorComponentProps,
} from '@tanstack/react-router';
import { FolderGit2 } from 'lucide-react';
import type { ReactNode } from 'react';
import { useAbout, useProjects } from './api/queries.ts';
import { readPreference } from './look/preferences.ts';
import { AddProjectForm } from './shell/add-project.tsx';
import { Shell } from './shell/shell.tsx';
import { TasksPage } from './tasks/page.tsx';
import { cleanLine } from './text/clean.ts';
import { Empty, Failure, Skeleton } from './ui/states.tsx';

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

function LastProject(): ReactNode {
  const { data: projects, error, refetch } = useProjects();
  const { data: about } = useAbout();
  if (error !== null) return <Failure error={error} retry={() => void refetch()} />;
  if (projects === undefined) return <Skeleton label="Loading" />;
  const last = readPreference<string | null>('last-project', null);
  const project = projects.find(({ id }) => id === last) ?? projects[0];
  if (project !== undefined) return <Navigate to="/p/$project" params={{ project: project.id }} search={{}} replace />;
  return (
    <div className="mx-auto max-w-lg">
      <h1 className="unseen">Projects</h1>
      <Empty icon={<FolderGit2 size={32} aria-hidden />} title="Which repository should agents work on?">
        Each task works on a private copy in a sandbox. Your files change only when you merge.
      </Empty>
      {about !== undefined && !about.sandbox.ok ? (
        <Failure error={new Error(cleanLine(about.sandbox.text))} title="Sandboxes do not work on this machine" />
      ) : null}
      <div className="px-4">
        <AddProjectForm onDone={() => undefined} />
      </div>
    </div>
  );
}

function NotFound(): ReactNode {
  return (
    <>
      <h1 className="unseen">Not found</h1>
      <Empty title="No page at this address">
        <Link to="/" className="text-accent underline">
          Go to tasks
        </Link>
      </Empty>
    </>
  );
}

function PageFailure({ error, reset }: ErrorComponentProps): ReactNode {
  return (
    <>
      <h1 className="unseen">Page error</h1>
      <Failure error={error} retry={reset} title="This page crashed. Your tasks are not affected." />
    </>
  );
}
