// web/src/ui/toasts.tsx: short messages in a corner, also announced to screen readers.
import { Toast } from '@base-ui/react/toast';
import { X } from 'lucide-react';
import type { ReactNode } from 'react';
import { ApiRefusal } from '../api/client.ts';
import { cleanLine } from '../text/clean.ts';
import { Button, IconButton } from './button.tsx';

const manager = Toast.createToastManager();

export function showToast(
  title: string,
  options: { about?: string; action?: { label: string; do: () => void } } = {},
): void {
  const id = manager.add({
    title,
    description: options.about,
    timeout: 6000,
    // A key that is pressed again repeats its message: once on the screen is enough.
    ...(options.action === undefined ? { id: `${title}\n${options.about ?? ''}` } : {}),
    ...(options.action === undefined
      ? {}
      : {
          actionProps: {
            children: options.action.label,
            onClick: () => {
              options.action?.do();
              manager.close(id);
            },
          },
        }),
  });
}

/** An error with its hint. Stays longer than other toasts. */
export function showFailure(error: unknown, what?: string): void {
  const failure = error instanceof ApiRefusal ? error : null;
  const message = error instanceof Error ? cleanLine(error.message) : 'Something went wrong.';
  manager.add({
    type: 'failure',
    priority: 'high',
    timeout: 15_000,
    title: what ?? message,
    description: [what === undefined ? '' : message, failure?.hint ?? ''].filter((part) => part !== '').join(' '),
  });
}

export function Toasts({ children }: { children: ReactNode }): ReactNode {
  return (
    <Toast.Provider toastManager={manager} limit={4}>
      {children}
      <Toast.Portal>
        <Toast.Viewport className="fixed right-4 bottom-4 z-50 flex w-[min(24rem,calc(100vw-2rem))] flex-col gap-2">
          <List />
        </Toast.Viewport>
      </Toast.Portal>
    </Toast.Provider>
  );
}

function List(): ReactNode {
  const { toasts } = Toast.useToastManager();
  return toasts.map((toast) => (
    <Toast.Root
      key={toast.id}
      toast={toast}
      data-toast
      className={`flex items-start gap-3 rounded-lg border bg-bg p-3 shadow-pop data-ending-style:opacity-0 ${toast.type === 'failure' ? 'border-bad' : 'border-line'}`}
    >
      <Toast.Content className="min-w-0 grow">
        <Toast.Title className={`font-medium ${toast.type === 'failure' ? 'text-bad' : ''}`} />
        <Toast.Description className="mt-0.5 text-sm wrap-anywhere text-muted" />
      </Toast.Content>
      {toast.actionProps === undefined ? null : <Toast.Action render={<Button size="small" />} />}
      <Toast.Close render={<IconButton label="Close" size="small" />}>
        <X size={14} aria-hidden />
      </Toast.Close>
    </Toast.Root>
  ));
}
