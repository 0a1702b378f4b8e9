// web/src/tasks/composer.tsx: the form that starts tasks, one line per goal.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import type { ReactNode } from 'react';
import { useAction } from '../actions/registry.ts';
import { api } from '../api/client.ts';
import { keys, useAbout, useProjectServices } from '../api/queries.ts';
import { usePreference } from '../look/preferences.ts';
import { plural } from '../text/format.ts';
import { Button } from '../ui/button.tsx';
import { Segments } from '../ui/fields.tsx';
import { Keys } from '../actions/keys.tsx';
import { showToast, showFailure } from '../ui/toasts.tsx';
import { BatchPreview } from './batch-preview.tsx';
import { Chips } from './chips.tsx';
import { agentsOf, startRequest, useChoices } from './choices.ts';
import { goalsOf } from './goals.ts';

export function Composer({ project }: { project: string }): ReactNode {
  const [text, setText] = usePreference(`draft.${project}`, '');
  const [asOne, setAsOne] = useState(false);
  const [agentOf, setAgentOf] = useState<Readonly<Record<string, string>>>({});
  const [choices, change] = useChoices(project);
  const { data: about } = useAbout();
  const agents = agentsOf(choices, about);
  const services = (useProjectServices(project).data?.services ?? []).map(({ name }) => name);
  const box = useRef<HTMLTextAreaElement>(null);
  const client = useQueryClient();
  const lines = goalsOf(text);
  const several = lines.length > 1;
  const goals =
    several && !asOne
      ? lines.map((line) => ({ text: line, ...((agentOf[line] ?? '') === '' ? {} : { agent: agentOf[line] ?? '' }) }))
      : text.trim() === ''
        ? []
        : [{ text: text.trim() }];
  const started = goals.length * choices.attempts * Math.max(1, agents.length);

  const start = useMutation({
    mutationFn: async () => api.startTasks(startRequest(project, goals, agents, choices, services)),
    onSuccess: async ({ tasks }) => {
      setText('');
      setAgentOf({});
      showToast(`${plural(tasks.length, 'task')} started`);
      await client.invalidateQueries({ queryKey: keys.tasks });
    },
    onError: (error) => showFailure(error, 'No task was started'),
  });
  const submit = (): void => {
    if (goals.length > 0 && !start.isPending) start.mutate();
  };
  useAction('compose', () => box.current?.focus());

  return (
    <form
      aria-label="New goal"
      className="rounded-lg border border-line-strong bg-bg focus-within:border-accent"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <textarea
        ref={box}
        aria-label="What should an agent do? Write one goal per line to start several."
        placeholder="What should an agent do? Write one goal per line to start several."
        value={text}
        rows={Math.min(12, Math.max(2, text.split('\n').length))}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            submit();
          }
        }}
        className="block w-full resize-none rounded-t-lg bg-transparent px-4 pt-3 pb-2 text-lg outline-none placeholder:text-muted"
      />
      {several ? (
        <div className="px-3 pb-2">
          <Segments
            label="Treat lines as"
            value={asOne ? 'one' : 'several'}
            choices={[
              { value: 'several', label: `${lines.length} goals` },
              { value: 'one', label: `One goal of ${lines.length} lines` },
            ]}
            onChange={(value) => setAsOne(value === 'one')}
          />
        </div>
      ) : null}
      {several && !asOne ? (
        <BatchPreview
          goals={lines}
          agentOf={agentOf}
          onAgent={(goal, agent) => setAgentOf({ ...agentOf, [goal]: agent })}
          onRemove={(at) => setText(lines.filter((_, one) => one !== at).join('\n'))}
        />
      ) : null}
      <div className="flex flex-wrap items-center gap-2 border-t border-line px-3 py-2">
        <Chips project={project} choices={choices} onChange={change} />
        <div className="ml-auto flex items-center gap-2">
          <span className="hidden text-muted xl:inline">
            <Keys keys="mod+enter" />
          </span>
          <Button type="submit" look="primary" disabled={goals.length === 0 || start.isPending}>
            {start.isPending ? 'Starting…' : started > 1 ? `Start ${started} tasks` : 'Start'}
          </Button>
        </div>
      </div>
    </form>
  );
}
