// web/src/review/merge-bar.tsx: what is taken, where to, what would happen, and the button for it.
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
import { FIELD } from '../ui/fields.tsx';
import { ChoiceChip, Menu, MenuItem } from '../ui/menu.tsx';
import { Failure } from '../ui/states.tsx';
import { say } from '../ui/toasts.tsx';
import { CHECKS_FIRST, ChecksBar } from './checks-bar.tsx';
import { selectionOf } from './choice.ts';
import { Done, Outlook } from './merge-preview.tsx';
import { NewBranch } from './new-branch.tsx';
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
  const wish = { ...selection, into: create ?? into, create: create !== null, keepCommits };
  const trial = useTrial(task.id, wish);
  const target = create ?? into ?? review.changes.into.branch;

  const settled = async (): Promise<void> => {
    await Promise.all([
      client.invalidateQueries({ queryKey: keys.task(task.id) }),
      client.invalidateQueries({ queryKey: keys.tasks }),
      client.invalidateQueries({ queryKey: keys.trial(task.id) }),
    ]);
  };
  const merge = useMutation({
    mutationFn: async () => api.merge(task.id, { ...wish, message: message.trim() === '' ? null : message }),
    onSuccess: settled,
  });
  const apply = useMutation({
    mutationFn: async () => api.apply(task.id, selection),
    onSuccess: async ({ files }) => {
      say(`${plural(files.length, 'file')} put into your working tree`, { about: 'Nothing was committed.' });
      await settled();
    },
  });
  const undo = useMutation({
    mutationFn: async () => api.undo(task.id),
    onSuccess: async ({ text }) => {
      merge.reset();
      say(cleanLine(text));
      await settled();
    },
  });
  // A button that cannot be pressed cannot have the focus: then it goes to what comes before it.
  useAction('merge', () => (button.current?.disabled === true ? checksButton.current : button.current)?.focus());

  const count = selection.files.length;
  // Of another choice: what is shown belongs to the one before.
  const tried = trial.isPlaceholderData ? undefined : trial.data;
  const refused = tried !== undefined && tried.problem !== null;
  // While another choice is tried, what was said of the one before stands: nothing flickers.
  const checksFirst = trial.data?.needsChecks === true;
  const busy = merge.isPending || apply.isPending || undo.isPending;
  if (merge.data !== undefined)
    return (
      <Done
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
      <Outlook trial={trial.data} trying={trial.isPlaceholderData} error={trial.error} count={count} />
      <ChecksBar
        task={task}
        selection={{ ...selection, into: create ?? into, create: create !== null }}
        trial={tried}
        first={checksFirst}
        buttonRef={checksButton}
      />
      <textarea
        aria-label="Message of the commit"
        placeholder={cleanLine(task.title, 120)}
        rows={2}
        value={message}
        disabled={keepCommits}
        onChange={(event) => setMessage(event.target.value)}
        className={`${FIELD} resize-y py-1.5 text-sm disabled:opacity-50`}
      />
      {merge.isError ? <Failure tight error={merge.error} title="It was not merged" /> : null}
      {apply.isError ? <Failure tight error={apply.error} title="Nothing was put into your files" /> : null}
      {undo.isError ? <Failure tight error={undo.error} title="It was not undone" /> : null}
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
            <Button aria-label="More ways to take it" disabled={busy}>
              More
              <ChevronDown size={14} aria-hidden />
            </Button>
          }
        >
          <MenuItem disabled={count === 0} onPick={() => apply.mutate()}>
            Put into working tree, uncommitted
          </MenuItem>
          <MenuItem onPick={() => setNaming(true)}>Merge into a new branch…</MenuItem>
          <MenuItem onPick={() => setKeepCommits(!keepCommits)}>
            {keepCommits ? 'Make it one commit' : "Keep the agent's commits"}
          </MenuItem>
          {task.can.includes('undo') ? (
            <MenuItem icon={<Undo2 size={16} aria-hidden />} onPick={() => undo.mutate()}>
              Undo the last merge
            </MenuItem>
          ) : null}
        </Menu>
      </div>
      {keepCommits ? <p className="text-xs text-muted">The agent's own commits are kept.</p> : null}
      {task.can.includes('merge') ? null : (
        <p className="text-xs text-muted">It cannot be merged while the agent works on it.</p>
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
      shown={`${cleanLine(value ?? 'a branch', 40)}${isNew ? ' (new)' : ''}`}
      choices={[
        ...names.map((name) => ({ value: name, label: cleanLine(name, 60) })),
        { value: NEW, label: 'New branch…' },
      ]}
      onChange={(next) => (next === NEW ? onNew() : onChange(next))}
    />
  );
}
