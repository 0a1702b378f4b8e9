// web/src/actions/palette.tsx: the command palette: finds actions, tasks and projects by name.
import { Dialog } from '@base-ui/react/dialog';
import { useNavigate } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import type { KeyboardEvent, ReactNode } from 'react';
import { useProjects, useTasks } from '../api/queries.ts';
import { cleanLine } from '../text/clean.ts';
import { StateBadge } from '../ui/state-badge.tsx';
import { Keys } from './keys.tsx';
import { ACTION_IDS, ACTIONS, isBound, runAction, useKeysOf } from './registry.ts';

interface Entry {
  readonly id: string;
  readonly kind: 'Action' | 'Task' | 'Project';
  readonly label: string;
  readonly about: ReactNode;
  readonly go: () => void;
}

const MOST = 60;
const focus = (box: HTMLInputElement | null): void => box?.focus();

/** Not lazy-loaded: it must take focus at once, or fast typing would trigger shortcuts of the page behind it. */
export function Palette({ onClose }: { onClose: () => void }): ReactNode {
  const [words, setWords] = useState('');
  const [at, setAt] = useState(0);
  const entries = useEntries();
  const found = useMemo(() => search(entries, words), [entries, words]);
  const pick = (entry: Entry | undefined): void => {
    if (entry === undefined) return;
    onClose();
    // Wait until the palette has closed, so that it does not take focus from what the action opens.
    setTimeout(entry.go, 0);
  };
  const onKey = (event: KeyboardEvent): void => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      const next = (at + step + found.length) % Math.max(1, found.length);
      setAt(next);
      document.querySelector(`#palette-${next}`)?.scrollIntoView({ block: 'nearest' });
    } else if (event.key === 'Enter') {
      event.preventDefault();
      pick(found[at]);
    }
  };
  return (
    <Dialog.Root open onOpenChange={(open) => (open ? undefined : onClose())}>
      <Dialog.Portal>
        <Dialog.Backdrop className="fixed inset-0 z-40 bg-[rgb(8_10_14/45%)]" />
        <Dialog.Popup
          aria-label="Search or run a command"
          className="fixed top-[12vh] left-1/2 z-50 flex max-h-[70vh] w-[calc(100vw-2rem)] max-w-xl -translate-x-1/2 flex-col overflow-hidden rounded-lg border border-line bg-bg shadow-pop outline-none"
        >
          <input
            ref={focus}
            type="text"
            role="combobox"
            aria-expanded
            aria-controls="palette-list"
            aria-activedescendant={found.length === 0 ? undefined : `palette-${at}`}
            aria-label="Search or run a command"
            placeholder="Search tasks and projects, or run a command"
            value={words}
            onChange={(event) => {
              setWords(event.target.value);
              setAt(0);
            }}
            onKeyDown={onKey}
            className="h-12 shrink-0 border-b border-line bg-bg px-4 text-lg outline-none placeholder:text-muted"
          />
          <div
            id="palette-list"
            role="listbox"
            aria-label="Results"
            tabIndex={-1}
            className="min-h-0 overflow-y-auto p-1"
          >
            {found.map((entry, index) => (
              <div
                key={entry.id}
                id={`palette-${index}`}
                role="option"
                tabIndex={-1}
                aria-selected={index === at}
                onPointerMove={() => setAt(index)}
                onClick={() => pick(entry)}
                onKeyDown={onKey}
                className="flex min-h-9 items-center gap-3 rounded-md px-3 py-1 aria-selected:bg-raised"
              >
                <span className="w-14 shrink-0 text-xs text-muted">{entry.kind}</span>
                <span className="min-w-0 grow truncate">{entry.label}</span>
                {entry.about}
              </div>
            ))}
            {found.length === 0 ? <p className="p-4 text-muted">No matches.</p> : null}
          </div>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

function useEntries(): readonly Entry[] {
  const navigate = useNavigate();
  const { data: tasks } = useTasks();
  const { data: projects } = useProjects();
  const keysOf = useKeysOf();
  return useMemo(
    () => [
      ...ACTION_IDS.filter((id) => id !== 'palette' && id !== 'up' && isBound(id)).map((id): Entry => {
        const keys = keysOf(id)[0];
        return {
          id: `action-${id}`,
          kind: 'Action',
          label: ACTIONS[id].label,
          about: keys === undefined ? null : <Keys keys={keys} />,
          go: () => void runAction(id),
        };
      }),
      ...(tasks?.tasks ?? []).map((task): Entry => ({
        id: `task-${task.id}`,
        kind: 'Task',
        label: cleanLine(task.title, 120),
        about: <StateBadge state={task.state} />,
        go: () =>
          void navigate({ to: '/p/$project/t/$task', params: { project: task.project, task: task.id }, search: {} }),
      })),
      ...(projects ?? []).map((project): Entry => ({
        id: `project-${project.id}`,
        kind: 'Project',
        label: cleanLine(project.name),
        about: null,
        go: () => void navigate({ to: '/p/$project', params: { project: project.id }, search: {} }),
      })),
    ],
    [tasks, projects, keysOf, navigate],
  );
}

function search(entries: readonly Entry[], words: string): readonly Entry[] {
  const parts = words
    .toLowerCase()
    .split(/\s+/)
    .filter((part) => part !== '');
  return entries.filter((entry) => parts.every((part) => entry.label.toLowerCase().includes(part))).slice(0, MOST);
}
