// web/src/network/page.tsx: connection attempts of the project's tasks, the network rules, and the built-in host lists.
import { getRouteApi } from '@tanstack/react-router';
import { Plus } from 'lucide-react';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { useTasks } from '../api/queries.ts';
import { cleanLine } from '../text/clean.ts';
import { Button } from '../ui/button.tsx';
import { Segments } from '../ui/fields.tsx';
import { ChoiceChip } from '../ui/menu.tsx';
import { Empty, Failure, Skeleton } from '../ui/states.tsx';
import { AddRule } from './add-rule.tsx';
import { Attempts } from './attempts.tsx';
import { Presets, Rules } from './rules.tsx';
import { useNetwork } from './use-network.ts';

const route = getRouteApi('/p/$project/network');
const TABS = ['blocked', 'allowed', 'rules', 'presets'] as const;
type Tab = (typeof TABS)[number];

export function NetworkPage(): ReactNode {
  const { project } = route.useParams();
  const { show, task } = route.useSearch();
  const navigate = route.useNavigate();
  const tab = TABS.find((one) => one === show) ?? 'blocked';
  const [adding, setAdding] = useState(false);
  const { data, error, refetch } = useNetwork(project, task ?? null);
  const blocked = data?.attempts.filter(({ verdict }) => verdict !== 'allowed') ?? [];
  const allowed = data?.attempts.filter(({ verdict }) => verdict === 'allowed') ?? [];
  return (
    <div className="mx-auto max-w-[90rem] px-3 pt-4 pb-10 md:px-6">
      <div className="flex flex-wrap items-start justify-between gap-3">
        <div className="min-w-0">
          <h1 className="text-xl font-semibold">Network</h1>
          <p className="mt-1 text-muted">
            Everything is blocked unless a rule allows it. Allowing a host lets the agent send data to it.
          </p>
        </div>
        <Button onClick={() => setAdding(true)}>
          <Plus size={14} aria-hidden /> Add rule
        </Button>
      </div>
      <div className="mt-4 mb-3 flex flex-wrap items-center gap-3">
        <Segments<Tab>
          label="Show"
          value={tab}
          choices={[
            { value: 'blocked', label: 'Blocked', count: blocked.length },
            { value: 'allowed', label: 'Allowed', count: allowed.length },
            { value: 'rules', label: 'Rules', count: data?.rules.length ?? 0 },
            { value: 'presets', label: 'Presets' },
          ]}
          onChange={(next) => void navigate({ search: (old) => ({ ...old, show: next }), replace: true })}
        />
        <TaskFilter
          project={project}
          task={task}
          onChange={(next) => void navigate({ search: (old) => ({ ...old, task: next }), replace: true })}
        />
      </div>
      {error === null ? null : <Failure error={error} retry={() => void refetch()} />}
      {data === undefined && error === null ? <Skeleton label="Loading" /> : null}
      {data === undefined ? null : tab === 'blocked' ? (
        blocked.length === 0 ? (
          <Empty title="Nothing was blocked" />
        ) : (
          <Attempts key="blocked" attempts={blocked} project={project} />
        )
      ) : tab === 'allowed' ? (
        allowed.length === 0 ? (
          <Empty title="No task has reached a host yet" />
        ) : (
          <Attempts key="allowed" attempts={allowed} project={project} />
        )
      ) : tab === 'rules' ? (
        <Rules rules={data.rules} />
      ) : (
        <Presets presets={data.presets} />
      )}
      {adding ? <AddRule project={project} onClose={() => setAdding(false)} /> : null}
    </div>
  );
}

function TaskFilter({
  project,
  task,
  onChange,
}: {
  project: string;
  task: string | undefined;
  onChange: (task: string | undefined) => void;
}): ReactNode {
  const { data } = useTasks();
  const mine = data?.tasks.filter((one) => one.project === project).slice(0, 100) ?? [];
  const chosen = mine.find(({ id }) => id === task);
  return (
    <ChoiceChip
      name="task"
      value={task ?? ''}
      shown={chosen === undefined ? 'All tasks' : cleanLine(chosen.name, 60)}
      choices={[
        { value: '', label: 'All tasks' },
        ...mine.map(({ id, name, title }) => ({ value: id, label: cleanLine(name), note: cleanLine(title, 60) })),
      ]}
      onChange={(next) => onChange(next === '' ? undefined : next)}
    />
  );
}
