// web/src/review/trial.ts: tries the merge after every change of the choice, so that what would happen is known before it is pressed.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { UseQueryResult } from '@tanstack/react-query';
import type { MergeTask, Merged } from '../../../src/protocol/api/review.ts';
import { api } from '../api/client.ts';
import { keys } from '../api/queries.ts';

const AFTER_MS = 350;

export function useTrial(task: string, wish: MergeTask): UseQueryResult<Merged> {
  return useQuery({
    queryKey: [...keys.trial(task), wish],
    queryFn: async ({ signal }) => {
      await new Promise((done) => setTimeout(done, AFTER_MS));
      if (signal.aborted) throw new Error('another choice was made');
      return api.merge(task, { ...wish, dryRun: true });
    },
    enabled: wish.files.length > 0,
    placeholderData: keepPreviousData,
    retry: false,
    gcTime: 0,
  });
}
