// web/src/review/merge-bar.tsx: the merge panel: selected files, target branch, trial merge, checks and the merge button.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { ChevronDown, GitBranch, GitMerge, LoaderCircle } from 'lucide-react';
import { useState } from 'react';
import type { ReactNode } from 'react';
import type { ApiTaskDetail } from '../../../src/protocol/api/api.ts';
import type { Merged } from '../../../src/protocol/api/review.ts';
import { useAction } from '../actions/registry.ts';
import { api } from '../api/client.ts';
import { keys, useBranches } from '../api/queries.ts';
import { cleanLine } from '../text/clean.ts';
import { plural } from '../text/format.ts';
import { Button } from '../ui/button.tsx';
import { useConfirm } from '../ui/confirm.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { FIELD, TextField } from '../ui/fields.tsx';
import { ChoiceChip, Menu, MenuItem } from '../ui/menu.tsx';
import { Failure } from '../ui/states.tsx';
import { showToast } from '../ui/toasts.tsx';
import { MergedLine } from '../tasks/merged-line.tsx';
import { CHECKS_FIRST, ChecksBar } from './checks-bar.tsx';
import { selectionOf } from './choice.ts';
import { MergeResult, MergePreview } from './merge-preview.tsx';
import { useReview } from './review-state.ts';
import { useTrial } from './trial.ts';

export function MergeBar({ task }: { task: ApiTaskDetail }): ReactNode {
  const review = useReview();
  const client = useQueryClient();
  const [into, setInto] = useState<string | null>(null);
  const [create, setCreate] = useState<string | null>(null);
  const [keepCommits, setKeepCommits] = useState(false);
  const [message, setMessage] = useState('');
  const [naming, setNaming] = useState(false);
  const [confirm, askFirst] = useConfirm();
  const selection = selectionOf(review.changes, review.choice);
  const request = { ...selection, into: create ?? into, create: create !== null, keepCommits };
  const trial = useTrial(task.id, request);
  const target = create ?? into ?? review.changes.into.branch;

  const settled = async (): Promise<void> => {
    await Promise.all([
      client.invalidateQueries({ queryKey: keys.task(task.id) }),
      client.invalidateQueries({ queryKey: keys.tasks }),
      client.invalidateQueries({ queryKey: keys.trial(task.id) }),
    ]);
  };
  const merge = useMutation({
    mutationFn: async () => api.merge(task.id, { ...request, message: message.trim() === '' ? null : message }),
    onSuccess: settled,
  });
  const apply = useMutation({
    mutationFn: async () => api.apply(task.id, selection),
    onSuccess: async ({ files }) => {
      showToast(`${plural(files.length, 'file')} written to your working tree`, { about: 'Nothing was committed.' });
      await settled();
    },
  });
  const undo = useMutation({
    mutationFn: async () => api.undo(task.id),
    onSuccess: async ({ text }) => {
      merge.reset();
      showToast(cleanLine(text));
      await settled();
    },
  });
  const count = selection.files.length;
  // Placeholder data belongs to the previous selection.
  const tried = trial.isPlaceholderData ? undefined : trial.data;
  const refused = tried !== undefined && tried.problem !== null;
  // Keep the previous answer during the next trial merge, so that the button does not flicker.
  const checksFirst = trial.data?.needsChecks === true;
  const busy = merge.isPending || apply.isPending || undo.isPending;
  const obstacle = whyNotMerge(task, {
    busy,
    count,
    tried,
    trying: tried === undefined && trial.error === null,
    checksFirst,
  });
  const askToMerge = (): void =>
    askFirst({
      title: `Merge ${plural(count, 'file')} into ${cleanLine(target ?? '', 60)}?`,
      label: 'Merge',
      about: (
        <>
          <ul className="font-mono text-sm">
            {selection.files.slice(0, SHOWN).map(({ n }) => (
              <li key={n} className="wrap-anywhere">
                {cleanLine(review.files.find((file) => file.n === n)?.path ?? '', 200)}
              </li>
            ))}
          </ul>
          {count > SHOWN ? <p className="text-sm text-muted">and {count - SHOWN} more</p> : null}
          <p className="mt-3 text-sm text-muted">{checksSentence(task, tried)}</p>
        </>
      ),
      do: () => merge.mutate(),
    });
  useAction('undo-merge', () => undo.mutate(), task.can.includes('undo') && !busy);
  useAction('merge', () => (obstacle === null ? askToMerge() : showToast(obstacle)), merge.data === undefined);

  if (merge.data !== undefined)
    return (
      <MergeResult
        merged={merge.data}
        undoing={busy}
        onUndo={() => undo.mutate()}
        onMore={() => merge.reset()}
        failure={undo.error}
      />
    );
  return (
    <section
      aria-label="Merge"
      className="flex shrink-0 flex-col gap-2 overflow-y-auto [@media(min-height:40rem)]:max-h-[55%] border-t border-line bg-panel p-3"
    >
      {task.can.includes('undo') ? <MergedLine task={task} busy={busy} onUndo={() => undo.mutate()} /> : null}
      <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
        <span className="tabular font-medium">
          {count} of {plural(review.files.length, 'file')}
        </span>
        <span aria-hidden className="text-muted">
          →
        </span>
        <Target
          project={task.project}
          value={target}
          onChange={(branch) => (setCreate(null), setInto(branch))}
          onNew={() => setNaming(true)}
          isNew={create !== null}
        />
      </div>
      <MergePreview trial={trial.data} trying={trial.isPlaceholderData} error={trial.error} count={count} />
      <ChecksBar
        task={task}
        selection={{ ...selection, into: create ?? into, create: create !== null }}
        trial={tried}
        first={checksFirst}
      />
      <textarea
        aria-label="Commit message"
        placeholder={cleanLine(task.title, 120)}
        rows={2}
        value={message}
        disabled={keepCommits}
        onChange={(event) => setMessage(event.target.value)}
        className={`${FIELD} resize-y py-1.5 text-sm disabled:opacity-50`}
      />
      {merge.isError ? <Failure tight error={merge.error} title="Nothing was merged" /> : null}
      {apply.isError ? <Failure tight error={apply.error} title="Your working tree was not changed" /> : null}
      {undo.isError ? <Failure tight error={undo.error} title="Undo failed" /> : null}
      <div className="flex gap-2">
        <Button
          look={checksFirst ? 'plain' : 'primary'}
          className="grow"
          aria-describedby={checksFirst ? CHECKS_FIRST : undefined}
          disabled={count === 0 || refused || checksFirst || busy || !task.can.includes('merge')}
          onClick={() => merge.mutate()}
        >
          {busy ? <LoaderCircle size={16} aria-hidden className="animate-spin" /> : <GitMerge size={16} aria-hidden />}
          Merge {plural(count, 'file')}
        </Button>
        <Menu
          trigger={
            <Button aria-label="More merge options" disabled={busy}>
              More
              <ChevronDown size={14} aria-hidden />
            </Button>
          }
        >
          <MenuItem disabled={count === 0} onPick={() => apply.mutate()}>
            Apply to working tree without committing
          </MenuItem>
          <MenuItem onPick={() => setNaming(true)}>Merge into a new branch…</MenuItem>
          <MenuItem onPick={() => setKeepCommits(!keepCommits)}>
            {keepCommits ? 'Squash into one commit' : "Keep the agent's commits"}
          </MenuItem>
        </Menu>
      </div>
      {keepCommits ? <p className="text-xs text-muted">The merge keeps the agent’s commits.</p> : null}
      {task.can.includes('merge') ? null : (
        <p className="text-xs text-muted">You can merge when the agent has stopped.</p>
      )}
      {confirm}
      <NewBranch
        open={naming}
        onClose={() => setNaming(false)}
        onName={(name) => {
          setCreate(name);
          setNaming(false);
        }}
      />
    </section>
  );
}

function whyNotMerge(
  task: ApiTaskDetail,
  now: { busy: boolean; count: number; tried: Merged | undefined; trying: boolean; checksFirst: boolean },
): string | null {
  if (!task.can.includes('merge')) return 'You can merge when the agent has stopped.';
  if (now.busy) return 'A merge is under way.';
  if (now.count === 0) return 'Select files to merge.';
  if (now.trying) return 'The merge is still being tried. Press the key again in a moment.';
  if (now.tried?.problem != null) return 'These files do not merge. The merge panel says why.';
  if (now.tried?.to === null) return 'Nothing to merge: the branch already has these changes.';
  return now.checksFirst ? 'The checks must pass first. The merge panel runs them.' : null;
}

const SHOWN = 12;

function checksSentence({ checks }: ApiTaskDetail, tried: Merged | undefined): string {
  if (checks === null || checks.tree !== tried?.tree) return 'No checks have run on this result.';
  return checks.state === 'passed' ? 'All checks passed on exactly this result.' : `Checks: ${checks.state}.`;
}

function Target({
  project,
  value,
  isNew,
  onChange,
  onNew,
}: {
  project: string;
  value: string | null;
  isNew: boolean;
  onChange: (branch: string) => void;
  onNew: () => void;
}): ReactNode {
  const { data } = useBranches(project);
  const names = [...new Set([...(value === null ? [] : [value]), ...(data?.branches ?? [])])];
  const NEW = ' new';
  return (
    <ChoiceChip
      name="Merge into"
      icon={<GitBranch size={14} aria-hidden className="shrink-0 text-muted" />}
      value={value ?? ''}
      shown={`${cleanLine(value ?? 'choose a branch', 40)}${isNew ? ' (new)' : ''}`}
      choices={[
        ...names.map((name) => ({ value: name, label: cleanLine(name, 60) })),
        { value: NEW, label: 'New branch…' },
      ]}
      onChange={(next) => (next === NEW ? onNew() : onChange(next))}
    />
  );
}

function NewBranch({
  open,
  onClose,
  onName,
}: {
  open: boolean;
  onClose: () => void;
  onName: (name: string) => void;
}): ReactNode {
  const [name, setName] = useState('');
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title="Merge into a new branch"
      about="The merge creates the branch at the commit where the task started."
    >
      <form
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault();
          if (name.trim() !== '') onName(name.trim());
        }}
      >
        <TextField label="Branch name" value={name} onChange={setName} placeholder="review/dates" mono />
        <div className="flex justify-end">
          <Button type="submit" look="primary" disabled={name.trim() === ''}>
            Use branch
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
