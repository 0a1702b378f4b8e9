// web/src/tasks/page.tsx: the task list of a project and the form that starts tasks.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useDeferredValue, useEffect, useMemo, useRef } from 'react';
import type { ReactNode } from 'react';
import type { ApiProject, ApiTask } from '../../../src/protocol/api/api.ts';
import { useAction } from '../actions/registry.ts';
import { api } from '../api/client.ts';
import { keys, useAbout, useProjects, useTasks } from '../api/queries.ts';
import { cleanLine } from '../text/clean.ts';
import { writePreference } from '../look/preferences.ts';
import { SearchField } from '../ui/fields.tsx';
import { Empty, Failure, Skeleton } from '../ui/states.tsx';
import { Composer } from './composer.tsx';
import { parseSearch } from './order.ts';
import { TaskActionsProvider } from './task-actions.tsx';
import { TaskList } from './task-list.tsx';

const route = getRouteApi('/p/$project');

export function TasksPage(): ReactNode {
  const { project: id } = route.useParams();
  const { q = '' } = route.useSearch();
  const { data, error, refetch } = useTasks();
  const { data: projects } = useProjects();
  const { data: about } = useAbout();
  const project = projects?.find((one) => one.id === id);
  const mine = useMemo(() => data?.tasks.filter((task) => task.project === id) ?? [], [data, id]);
  const { shown, searching } = useTaskSearch(id, q, mine);
  return (
    <TaskActionsProvider>
      <div className="mx-auto max-w-[90rem] px-3 pt-4 pb-10 md:px-6">
        <h1 className="unseen">Tasks in {cleanLine(project?.name ?? 'this project')}</h1>
        {about !== undefined && !about.sandbox.ok ? (
          <Failure error={new Error(cleanLine(about.sandbox.text))} title="Sandboxes do not work on this machine" />
        ) : null}
        <ProjectState project={project} missing={projects !== undefined && project === undefined} />
        {project?.state === 'ready' ? <Composer key={id} project={id} /> : null}
        {mine.length > 0 || q !== '' ? <Filter q={q} found={q === '' ? null : shown.length} /> : null}
        {error === null ? null : <Failure error={error} retry={() => void refetch()} />}
        {data === undefined && error === null ? <Skeleton label="Loading tasks" /> : null}
        {data !== undefined && shown.length > 0 ? <TaskList tasks={shown} parallel={data.parallel} /> : null}
        {data !== undefined && mine.length === 0 && project?.state === 'ready' ? <Starters project={id} /> : null}
        {q !== '' && shown.length === 0 && !searching && mine.length > 0 ? (
          <Empty title="No matching tasks">
            Search covers goals, messages, commands and paths. Filters: is:failed, agent:name, host:name.
          </Empty>
        ) : null}
      </div>
    </TaskActionsProvider>
  );
}

function Filter({ q, found }: { q: string; found: number | null }): ReactNode {
  const navigate = route.useNavigate();
  const field = useRef<HTMLInputElement>(null);
  useAction('filter', () => field.current?.focus());
  return (
    <div className="mt-4 flex items-center gap-3">
      <SearchField
        label="Search goals and history"
        fieldRef={field}
        value={q}
        onChange={(next) => void navigate({ search: next === '' ? {} : { q: next }, replace: true })}
        className="w-full max-w-80"
      />
      {found === null ? null : <span className="tabular text-sm text-muted">{found} found</span>}
    </div>
  );
}

/** Filters rows immediately, and adds the tasks whose history matches when the server answers. */
function useTaskSearch(
  project: string,
  q: string,
  mine: readonly ApiTask[],
): { shown: readonly ApiTask[]; searching: boolean } {
  const late = useDeferredValue(q);
  const { words, fits } = useMemo(() => parseSearch(late), [late]);
  const { data, isFetching } = useQuery({
    queryKey: keys.search(project, words),
    queryFn: async () => {
      await new Promise((done) => setTimeout(done, 200));
      return api.tasks({ project, q: words });
    },
    enabled: words !== '',
    staleTime: 5000,
    placeholderData: keepPreviousData,
  });
  const shown = useMemo(() => {
    if (late === '') return mine;
    const ids = new Set(words === '' ? [] : data?.tasks.map(({ id }) => id));
    const has = ({ title, name }: ApiTask): boolean =>
      words
        .toLowerCase()
        .split(' ')
        .every((word) => `${title} ${name}`.toLowerCase().includes(word));
    return mine.filter((task) => fits(task) && (words === '' || ids.has(task.id) || has(task)));
  }, [late, words, fits, mine, data]);
  return { shown, searching: isFetching };
}

function ProjectState({ project, missing }: { project: ApiProject | undefined; missing: boolean }): ReactNode {
  if (missing)
    return (
      <Failure
        error={new Error('Add it again with “Add project”, or open another project.')}
        title="This project is not on the list"
      />
    );
  if (project?.state === 'cloning')
    return (
      <div role="status" className="rounded-lg border border-line bg-info-bg p-4">
        <p className="font-medium text-info">Cloning {cleanLine(project.url ?? project.name)}</p>
        <p className="mt-1 truncate font-mono text-sm">{cleanLine(project.progress ?? 'Starting…')}</p>
      </div>
    );
  if (project?.state === 'failed')
    return <Failure error={new Error(project.progress ?? 'git gave no reason.')} title="Cannot clone the repository" />;
  if (project?.state === 'missing')
    return <Failure error={new Error(project.path)} title="This project’s directory no longer exists" />;
  return null;
}

const toBox = (): void => document.querySelector<HTMLElement>('textarea')?.focus();

const STARTERS = [
  'Explain how this repository is built and tested, in docs/overview.md',
  'Find one untested function and write tests for it',
  'Look for outdated or wrong statements in the README and correct them',
];

function Starters({ project }: { project: string }): ReactNode {
  // An empty list leaves only one thing to do: write the first goal.
  useEffect(() => {
    if (document.activeElement === document.body) toBox();
  }, []);
  return (
    <Empty title="No tasks yet">
      <p>
        Each task works on a private copy in a sandbox: it cannot change your files or reach hosts that no rule allows.
        You decide what is merged.
      </p>
      <ul className="mt-4 flex flex-col gap-2">
        {STARTERS.map((goal) => (
          <li key={goal}>
            <button
              type="button"
              onClick={() => {
                writePreference(`draft.${project}`, goal);
                toBox();
              }}
              className="w-full rounded-md border border-line px-3 py-2 text-left text-text hover:bg-raised"
            >
              {goal}
            </button>
          </li>
        ))}
      </ul>
    </Empty>
  );
}
