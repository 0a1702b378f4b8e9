// web/src/task/sandbox-chip.tsx: a summary of the task's sandbox: backend, restrictions and what the task can see.
import { Popover } from '@base-ui/react/popover';
import { Lock } from 'lucide-react';
import type { ReactNode } from 'react';
import type { ApiTaskDetail } from '../../../src/protocol/api/api.ts';
import { cleanLine } from '../text/clean.ts';
import { plural } from '../text/format.ts';
import { OVERLAY } from '../ui/menu.tsx';

const BUILDERS = {
  native: { word: null, by: 'bubblewrap, on this machine' },
  docker: { word: 'Docker', by: 'Docker' },
  podman: { word: 'Podman', by: 'Podman' },
} as const;
const MOST_HIDDEN = 6;

export function SandboxChip({ task }: { task: ApiTaskDetail }): ReactNode {
  const { word, by } = BUILDERS[task.backend];
  const image = task.image === null ? null : cleanLine(task.image, 60);
  const words = ['Sandboxed', word, image].filter((one) => one !== null).join(' · ');
  return (
    <Popover.Root modal>
      <Popover.Trigger className="inline-flex h-6 max-w-full items-center gap-1 rounded-full border border-line px-2 text-text hover:bg-raised">
        <Lock size={12} aria-hidden className="shrink-0" /> <span className="truncate">{words}</span>
      </Popover.Trigger>
      <Popover.Portal container={OVERLAY}>
        <Popover.Positioner sideOffset={4} align="start" className="z-40">
          <Popover.Popup className="max-h-(--available-height) w-96 max-w-[calc(100vw-2rem)] overflow-y-auto rounded-lg border border-line bg-bg p-4 text-sm shadow-pop outline-none">
            <Popover.Title className="text-base font-medium">What this task can see</Popover.Title>
            <ul className="mt-2 list-disc pl-5">
              <li>A private copy of the project. Your files change only when you merge.</li>
              <li>Placeholders instead of your keys and tokens, and nothing of your home directory.</li>
              <li>Only network hosts that a rule allows.</li>
              {task.hidden.length === 0 ? null : <Hidden files={task.hidden} />}
            </ul>
            {task.sandbox === '' ? null : (
              <dl className="mt-3 grid grid-cols-[auto_minmax(0,1fr)] gap-x-3 gap-y-1 border-t border-line pt-3">
                <Fact name="Backend">{by}</Fact>
                <Fact name="Programs">{task.image === null ? 'from this machine' : cleanLine(task.image, 300)}</Fact>
                <Fact name="Restrictions">
                  <ul className="flex flex-wrap gap-1">
                    {task.sandbox.split(' · ').map((part) => (
                      <li key={part} className="rounded-sm bg-raised px-1.5 wrap-anywhere">
                        {cleanLine(part, 120)}
                      </li>
                    ))}
                  </ul>
                </Fact>
              </dl>
            )}
          </Popover.Popup>
        </Popover.Positioner>
      </Popover.Portal>
    </Popover.Root>
  );
}

function Hidden({ files }: { files: readonly string[] }): ReactNode {
  const more = files.length - MOST_HIDDEN;
  return (
    <li className="wrap-anywhere">
      {plural(files.length, 'project file')} that may hold secrets {files.length === 1 ? 'is' : 'are'} hidden:{' '}
      <span className="font-mono">
        {files
          .slice(0, MOST_HIDDEN)
          .map((path) => cleanLine(path, 80))
          .join(', ')}
      </span>
      {more > 0 ? ` and ${more} more` : ''}
    </li>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }): ReactNode {
  return (
    <>
      <dt className="text-muted">{name}</dt>
      <dd className="wrap-anywhere">{children}</dd>
    </>
  );
}
