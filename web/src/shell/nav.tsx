// web/src/shell/nav.tsx: the sidebar: pages, projects and the state of the sandbox.
import { Link } from '@tanstack/react-router';
import { Box, Globe, LayoutList, LoaderCircle, Plus, Settings, TriangleAlert } from 'lucide-react';
import type { ReactNode } from 'react';
import type { ApiProject } from '../../../src/protocol/api/api.ts';
import { useAbout, useProjects, useTasks } from '../api/queries.ts';
import { cleanLine } from '../text/clean.ts';
import { money } from '../text/format.ts';
import { IconButton } from '../ui/button.tsx';
import { useCurrent } from './current.ts';

const ITEM =
  'flex h-8 items-center gap-2 rounded-md px-2 text-text hover:bg-raised data-[status=active]:bg-raised data-[status=active]:font-medium';

export function Nav({ onAdd, className = '' }: { onAdd: () => void; className?: string }): ReactNode {
  const { project } = useCurrent();
  const { data: projects } = useProjects();
  const { data: tasks } = useTasks();
  const here = tasks?.tasks.filter((task) => task.project === project) ?? [];
  const waiting = here.filter(({ group }) => group === 'needs-you').length;
  const blocked = new Set(here.filter(({ live }) => live).flatMap(({ blockedHosts }) => blockedHosts)).size;
  return (
    <nav aria-label="Main" className={`min-h-0 flex-col border-r border-line bg-panel ${className}`}>
      <div className="flex h-12 shrink-0 items-center gap-2 px-4">
        <img src="/favicon.svg" alt="" width={20} height={20} />
        <span className="font-semibold">ags</span>
      </div>
      <div className="min-h-0 grow overflow-y-auto px-2 pb-4">
        <ul className="flex flex-col gap-0.5">
          {project === null ? null : (
            <>
              <li>
                <Link
                  to="/p/$project"
                  params={{ project }}
                  search={{}}
                  activeOptions={{ exact: true, includeSearch: false }}
                  className={ITEM}
                >
                  <LayoutList size={16} aria-hidden className="text-muted" />
                  <span className="grow">Tasks</span>
                  <Count count={waiting} what="waiting for you" />
                </Link>
              </li>
              <li>
                <Link
                  to="/p/$project/network"
                  params={{ project }}
                  search={{}}
                  activeOptions={{ includeSearch: false }}
                  className={ITEM}
                >
                  <Globe size={16} aria-hidden className="text-muted" />
                  <span className="grow">Network</span>
                  <Count count={blocked} what="hosts blocked for running tasks" />
                </Link>
              </li>
            </>
          )}
          <li>
            <Link to="/settings" className={ITEM}>
              <Settings size={16} aria-hidden className="text-muted" />
              Settings
            </Link>
          </li>
        </ul>
        <div className="mt-5 mb-1 flex items-center justify-between pr-1 pl-2">
          <h2 className="text-xs font-semibold tracking-wide text-muted uppercase">Projects</h2>
          <IconButton label="Add project" size="small" onClick={onAdd}>
            <Plus size={16} aria-hidden />
          </IconButton>
        </div>
        <ul className="flex flex-col gap-0.5">
          {projects?.map((one) => (
            <ProjectLink key={one.id} project={one} here={one.id === project} />
          ))}
        </ul>
      </div>
      <Footer spentMicros={spentToday(tasks?.tasks ?? [])} />
    </nav>
  );
}

function ProjectLink({ project, here }: { project: ApiProject; here: boolean }): ReactNode {
  return (
    <li>
      <Link
        to="/p/$project"
        params={{ project: project.id }}
        search={{}}
        title={cleanLine(project.path)}
        className={`flex h-8 items-center gap-2 rounded-md px-2 hover:bg-raised ${here ? 'font-medium' : 'text-muted'}`}
      >
        <ProjectSign state={project.state} here={here} />
        <span className="min-w-0 grow truncate">{cleanLine(project.name)}</span>
        {here ? <span className="unseen">, open</span> : null}
        <Count count={project.needYou} what="waiting for you" />
      </Link>
    </li>
  );
}

function ProjectSign({ state, here }: { state: ApiProject['state']; here: boolean }): ReactNode {
  if (state === 'cloning') return <LoaderCircle size={16} className="animate-spin text-info" aria-label="cloning" />;
  if (state !== 'ready') return <TriangleAlert size={16} className="text-bad" aria-label={state} />;
  return <Box size={16} aria-hidden className={here ? 'text-accent' : 'text-muted'} />;
}

function Count({ count, what }: { count: number; what: string }): ReactNode {
  if (count === 0) return null;
  return (
    <span className="tabular rounded-full bg-warn-bg px-1.5 text-xs font-semibold text-warn">
      {count}
      <span className="unseen"> {what}</span>
    </span>
  );
}

function Footer({ spentMicros }: { spentMicros: number }): ReactNode {
  const { data: about } = useAbout();
  if (about === undefined) return null;
  return (
    <div className="shrink-0 border-t border-line px-4 py-3 text-xs text-muted">
      <p className="flex items-start gap-2" title={cleanLine(about.sandbox.text)}>
        <span aria-hidden className={`mt-1 size-2 shrink-0 rounded-full ${about.sandbox.ok ? 'bg-ok' : 'bg-bad'}`} />
        <span className="line-clamp-2">{about.sandbox.ok ? 'Sandbox ready' : cleanLine(about.sandbox.text)}</span>
      </p>
      {spentMicros === 0 ? null : <p className="tabular mt-1 pl-4">{money(spentMicros)} today</p>}
    </div>
  );
}

function spentToday(tasks: readonly { startedAtMs: number; costMicros: number | null }[]): number {
  const midnight = new Date().setHours(0, 0, 0, 0);
  return tasks.reduce((sum, task) => sum + (task.startedAtMs >= midnight ? (task.costMicros ?? 0) : 0), 0);
}
