// web/src/tasks/fork-form.tsx: the goal and agent of a fork.
import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useId, useState } from 'react';
import type { ReactNode } from 'react';
import type { ApiTask } from '../../../src/protocol/api/api.ts';
import { api } from '../api/client.ts';
import { useAbout } from '../api/queries.ts';
import { cleanLine } from '../text/clean.ts';
import { Button } from '../ui/button.tsx';
import { FIELD } from '../ui/fields.tsx';
import { showFailure } from '../ui/toasts.tsx';

export function ForkForm({ task, onDone }: { task: ApiTask; onDone: () => void }): ReactNode {
  const [text, setText] = useState('');
  const [agent, setAgent] = useState(task.agent ?? '');
  const { data: about } = useAbout();
  const navigate = useNavigate();
  const id = useId();
  const fork = useMutation({
    mutationFn: async () => api.fork(task.id, { text: text.trim(), ...(agent === '' ? {} : { agent }) }),
    onSuccess: async ({ tasks: [first] }) => {
      onDone();
      if (first !== undefined)
        await navigate({ to: '/p/$project/t/$task', params: { project: task.project, task: first }, search: {} });
    },
    onError: (error) => showFailure(error, 'The fork was not started'),
  });
  return (
    <form
      className="flex flex-col gap-4"
      onSubmit={(event) => {
        event.preventDefault();
        if (text.trim() !== '') fork.mutate();
      }}
    >
      <div>
        <label htmlFor={`${id}-goal`} className="mb-1 block text-sm font-medium">
          What should it do?
        </label>
        <textarea
          id={`${id}-goal`}
          rows={4}
          value={text}
          onChange={(event) => setText(event.target.value)}
          className={`${FIELD} py-2`}
        />
      </div>
      <div>
        <label htmlFor={`${id}-agent`} className="mb-1 block text-sm font-medium">
          Agent
        </label>
        <select
          id={`${id}-agent`}
          value={agent}
          onChange={(event) => setAgent(event.target.value)}
          className={`${FIELD} h-9`}
        >
          {about?.agents
            .filter(({ installed, name }) => installed || name === agent)
            .map((one) => (
              <option key={one.name} value={one.name}>
                {cleanLine(one.title)}
              </option>
            ))}
        </select>
      </div>
      <div className="flex justify-end">
        <Button type="submit" look="primary" disabled={text.trim() === '' || fork.isPending}>
          Start fork
        </Button>
      </div>
    </form>
  );
}
