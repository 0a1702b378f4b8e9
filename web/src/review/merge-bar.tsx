// web/src/review/merge-bar.tsx: the merge panel: selected files, target branch, trial merge, checks and the merge button.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { ChevronDown, GitBranch, GitMerge, LoaderCircle, Undo2 } from 'lucide-react';
import { useRef, useState } from 'react';
import type { ReactNode } from 'react';
import type { ApiTaskDetail } from '../../../src/protocol/api/api.ts';
import { useAction } from '../actions/registry.ts';
import { api } from '../api/client.ts';
import { keys, useBranches } from '../api/queries.ts';
import { cleanLine } from '../text/clean.ts';
import { plural } from '../text/format.ts';
import { Button } from '../ui/button.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { FIELD, TextField } from '../ui/fields.tsx';
import { ChoiceChip, Menu, MenuItem } from '../ui/menu.tsx';
import { Failure } from '../ui/states.tsx';
import { showToast } from '../ui/toasts.tsx';
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
  const button = useRef<HTMLButtonElement>(null);
  const checksButton = useRef<HTMLButtonElement>(null);
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
  // A disabled button cannot take focus, so the shortcut leads to the checks button that enables it.
  useAction('merge', () => (button.current?.disabled === true ? checksButton.current : button.current)?.focus());

  const count = selection.files.length;
  // Placeholder data belongs to the previous selection.
  const tried = trial.isPlaceholderData ? undefined : trial.data;
  const refused = tried !== undefined && tried.problem !== null;
  // Keep the previous answer during the next trial merge, so that the button does not flicker.
  const checksFirst = trial.data?.needsChecks === true;
  const busy = merge.isPending || apply.isPending || undo.isPending;
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
        buttonRef={checksButton}
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
          ref={button}
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
          {task.can.includes('undo') ? (
            <MenuItem icon={<Undo2 size={16} aria-hidden />} onPick={() => undo.mutate()}>
              Undo last merge
            </MenuItem>
          ) : null}
        </Menu>
      </div>
      {keepCommits ? <p className="text-xs text-muted">The merge keeps the agent’s commits.</p> : null}
      {task.can.includes('merge') ? null : (
        <p className="text-xs text-muted">You can merge when the agent has stopped.</p>
      )}
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
