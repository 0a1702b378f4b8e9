// web/src/review/conflict.tsx: help with merge conflicts: compare both sides, or let an agent resolve them.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { Bot } from 'lucide-react';
import { useMemo, useRef, useState } from 'react';
import type { ReactNode } from 'react';
import type { ApiFile } from '../../../src/protocol/api/review.ts';
import { api } from '../api/client.ts';
import { keys } from '../api/queries.ts';
import { DiffView, HEADER_PX } from '../diff/diff-view.tsx';
import type { DiffFile, DiffHandle } from '../diff/diff-view.tsx';
import { readDiff } from '../diff/source.ts';
import { useCurrent } from '../shell/current.ts';
import { cleanLine } from '../text/clean.ts';
import { Button } from '../ui/button.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { Failure, Skeleton } from '../ui/states.tsx';
import { showToast, showFailure } from '../ui/toasts.tsx';
import { useReview } from './review-state.ts';

export function ConflictHelp({ files, into }: { files: readonly ApiFile[]; into: string }): ReactNode {
  const { task } = useReview();
  const { project } = useCurrent();
  const [shown, setShown] = useState<ApiFile | null>(null);
  const navigate = useNavigate();
  const client = useQueryClient();
  const resolve = useMutation({
    mutationFn: async () => api.resolve(task, { into }),
    onSuccess: async ({ tasks: [made = ''] }) => {
      await client.invalidateQueries({ queryKey: keys.tasks });
      showToast('An agent is resolving the conflict', { about: 'Review and merge its result as a separate task.' });
      await navigate({ to: '/p/$project/t/$task', params: { project: project ?? '', task: made }, search: {} });
    },
    onError: (error) => showFailure(error, 'No agent was started'),
  });
  return (
    <div className="mt-2 flex flex-wrap gap-2">
      {files.slice(0, 8).map((file) => (
        <Button
          key={file.n}
          size="small"
          aria-label={`Compare sides of ${cleanLine(file.path)}`}
          onClick={() => setShown(file)}
        >
          Compare sides
          {files.length === 1 ? '' : ` of ${cleanLine(file.path.slice(file.path.lastIndexOf('/') + 1), 40)}`}
        </Button>
      ))}
      <Button size="small" disabled={resolve.isPending} onClick={() => resolve.mutate()}>
        <Bot size={14} aria-hidden /> Let an agent resolve it
      </Button>
      {shown === null ? null : (
        <Dialog
          wide
          open
          onClose={() => setShown(null)}
          title={cleanLine(shown.path, 120)}
          about="The changes of each side to the common base version."
        >
          <BothSides file={shown} into={into} />
        </Dialog>
      )}
    </div>
  );
}

function BothSides({ file, into }: { file: ApiFile; into: string }): ReactNode {
  const { task, changes } = useReview();
  const { data, error } = useQuery({
    queryKey: ['conflict', task, changes.id, file.n, into],
    queryFn: async () => api.conflict(task, changes.id, file.n, { into }),
    gcTime: 0,
  });
  const diff = useRef<DiffHandle>(null);
  const sides = useMemo((): readonly DiffFile[] => {
    const side = (id: 'yours' | 'theirs'): DiffFile => {
      const patch = data?.[id] ?? '';
      const text =
        patch === ''
          ? null
          : readDiff(`${changes.id}:${file.n}:${id}`, file.path, { before: '', after: '', patch }, false);
      return { id, version: 1, text, folded: text === null, notes: [] };
    };
    return data === undefined ? [] : [side('yours'), side('theirs')];
  }, [data, changes.id, file]);
  if (error !== null) return <Failure error={error} title="Cannot show both sides" />;
  if (data === undefined) return <Skeleton label="Loading both sides" />;
  const names = { yours: `On ${cleanLine(data.branch, 60)}`, theirs: 'In this task' };
  return (
    <div className="h-[60vh] border border-line">
      <DiffView
        ref={diff}
        label="Both sides"
        files={sides}
        layout="unified"
        selected={null}
        onSelect={() => undefined}
        onGutter={null}
        renderHeader={(id) => (
          <div
            className="flex items-center border-b border-line bg-panel px-3 font-sans text-base font-medium text-text"
            style={{ height: HEADER_PX }}
          >
            {id === 'yours' ? names.yours : names.theirs}
            {data[id === 'yours' ? 'yours' : 'theirs'] === '' ? (
              <span className="ml-3 font-normal text-muted">No changes that can be shown as text.</span>
            ) : null}
          </div>
        )}
        renderNote={() => null}
      />
    </div>
  );
}
