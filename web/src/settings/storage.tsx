// web/src/settings/storage.tsx: disk usage, and a clean-up that deletes no unmerged work.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { api } from '../api/client.ts';
import { keys } from '../api/queries.ts';
import { cleanLine } from '../text/clean.ts';
import { bytes, plural } from '../text/format.ts';
import { Button } from '../ui/button.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { Failure, Skeleton } from '../ui/states.tsx';
import { showToast, showFailure } from '../ui/toasts.tsx';
import { Section } from './section.tsx';

export function Storage(): ReactNode {
  const [asking, setAsking] = useState(false);
  const client = useQueryClient();
  const { data, error, refetch } = useQuery({
    queryKey: keys.storage,
    queryFn: async () => api.storage(),
    staleTime: 0,
  });
  const clean = useMutation({
    mutationFn: async () => api.clean(),
    onSuccess: async ({ removed, bytes: freed }) => {
      setAsking(false);
      showToast(`${plural(removed, 'item')} deleted, ${bytes(freed)} freed`);
      await client.invalidateQueries({ queryKey: keys.storage });
    },
    onError: (failure) => showFailure(failure, 'The clean-up stopped'),
  });
  const safe = data?.items.filter((item) => item.safe) ?? [];
  const freed = safe.reduce((sum, item) => sum + item.bytes, 0);
  return (
    <Section title="Storage" about="Clean-up never deletes unmerged work.">
      {error === null ? null : <Failure error={error} retry={() => void refetch()} />}
      {data === undefined && error === null ? <Skeleton rows={3} label="Measuring disk usage" /> : null}
      {data === undefined ? null : (
        <>
          <p className="tabular mb-2">{bytes(data.bytes)} in total</p>
          <ul className="border-t border-line">
            {data.items.map((item, at) => (
              <li key={at} className="flex flex-wrap items-center gap-x-4 border-b border-line py-2">
                <span className="min-w-0 grow basis-60">
                  <span className="block wrap-anywhere">{cleanLine(item.what)}</span>
                  <span className="block text-sm wrap-anywhere text-muted">{cleanLine(item.kept ?? item.why)}</span>
                </span>
                <span className={`text-sm ${item.safe ? 'text-ok' : 'text-muted'}`}>
                  {item.safe ? 'Can be deleted' : 'Kept'}
                </span>
                <span className="tabular w-20 text-right text-sm">{bytes(item.bytes)}</span>
              </li>
            ))}
          </ul>
          <Button className="mt-3" disabled={safe.length === 0} onClick={() => setAsking(true)}>
            {safe.length === 0 ? 'Nothing to delete' : `Delete ${plural(safe.length, 'item')}, ${bytes(freed)}`}
          </Button>
        </>
      )}
      <Dialog
        open={asking}
        onClose={() => setAsking(false)}
        title={`Delete ${plural(safe.length, 'item')}?`}
        about={`Frees ${bytes(freed)}. This cannot be undone.`}
      >
        <ul className="mb-4 max-h-60 overflow-y-auto text-sm">
          {safe.map((item, at) => (
            <li key={at} className="py-0.5 wrap-anywhere">
              {cleanLine(item.what)}
            </li>
          ))}
        </ul>
        <div className="flex justify-end gap-2">
          <Button onClick={() => setAsking(false)}>Cancel</Button>
          <Button look="danger" disabled={clean.isPending} onClick={() => clean.mutate()}>
            Delete
          </Button>
        </div>
      </Dialog>
    </Section>
  );
}
