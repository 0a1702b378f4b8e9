// web/src/review/trial.ts: runs a trial merge after every change of the selection, so that the outcome is known in advance.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { UseQueryResult } from '@tanstack/react-query';
import type { MergeTask, Merged } from '../../../src/protocol/api/review.ts';
import { api } from '../api/client.ts';
import { keys } from '../api/queries.ts';

const AFTER_MS = 350;

export function useTrial(task: string, request: MergeTask): UseQueryResult<Merged> {
  return useQuery({
    queryKey: [...keys.trial(task), request],
    queryFn: async ({ signal }) => {
      await new Promise((done) => setTimeout(done, AFTER_MS));
      if (signal.aborted) throw new Error('the selection changed');
      return api.merge(task, { ...request, dryRun: true });
    },
    enabled: request.files.length > 0,
    placeholderData: keepPreviousData,
    retry: false,
    gcTime: 0,
  });
}
