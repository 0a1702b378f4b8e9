// web/src/network/use-network.ts: connection attempts of a project or task, read again while running tasks make more.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import type { UseQueryResult } from '@tanstack/react-query';
import { useEffect } from 'react';
import type { ApiNetwork } from '../../../src/protocol/api/api.ts';
import { api } from '../api/client.ts';
import { keys, useTasks } from '../api/queries.ts';
import { useLive } from '../live/live.tsx';

const READ_EVERY_MS = 400;

export function useNetwork(project: string, task: string | null): UseQueryResult<ApiNetwork> {
  const live = useLive();
  const client = useQueryClient();
  const { data: tasks } = useTasks();
  const query = useQuery({
    queryKey: keys.network(project, task),
    queryFn: async () => api.network({ project, ...(task === null ? {} : { task }) }),
    staleTime: 0,
  });
  const running = (tasks?.tasks ?? [])
    .filter((one) => one.live && one.project === project && (task === null || one.id === task))
    .map(({ id }) => id)
    .join(' ');
  useEffect(() => {
    if (running === '') return undefined;
    const end = new AbortController();
    let [reading, stale] = [false, false];
    const readAgain = async (): Promise<void> => {
      stale = true;
      if (reading) return;
      reading = true;
      while (stale && !end.signal.aborted) {
        stale = false;
        await client.invalidateQueries({ queryKey: keys.network(project, task) });
        await new Promise((done) => setTimeout(done, READ_EVERY_MS));
      }
      reading = false;
    };
    const leaving = running.split(' ').map((id) => {
      // Sequence number 0 is older than any of the server's, so its first message triggers a read and no change is missed.
      let seq = 0;
      return live.subscribe(`network:${id}`, {
        after: () => seq,
        message(message) {
          seq = message.seq;
          void readAgain();
        },
      });
    });
    return () => {
      end.abort();
      for (const leave of leaving) leave();
    };
  }, [live, client, running, project, task]);
  return query;
}
