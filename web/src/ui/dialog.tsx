// web/src/ui/dialog.tsx: a modal dialog.
import { Dialog as Base } from '@base-ui/react/dialog';
import { X } from 'lucide-react';
import type { ReactNode } from 'react';
import { IconButton } from './button.tsx';

export function Dialog({
  open,
  onClose,
  title,
  about,
  wide = false,
  reads = false,
  children,
}: {
  open: boolean;
  onClose: () => void;
  title: string;
  about?: ReactNode;
  wide?: boolean;
  /** The dialog contains only text, so its body must be focusable for keyboard scrolling. */
  reads?: boolean;
  children: ReactNode;
}): ReactNode {
  return (
    <Base.Root open={open} onOpenChange={(next) => (next ? undefined : onClose())}>
      <Base.Portal>
        <Base.Backdrop className="fixed inset-0 z-40 bg-[rgb(8_10_14/45%)]" />
        <Base.Popup
          className={`fixed top-[10vh] left-1/2 z-50 flex max-h-[80vh] w-[calc(100vw-2rem)] -translate-x-1/2 flex-col rounded-lg border border-line bg-bg shadow-pop outline-none ${wide ? 'max-w-3xl' : 'max-w-lg'}`}
        >
          <div className="flex items-start gap-4 px-5 pt-4">
            <div className="min-w-0 grow">
              <Base.Title className="text-lg font-semibold">{title}</Base.Title>
              {about === undefined ? null : <Base.Description className="mt-1 text-muted">{about}</Base.Description>}
            </div>
            <Base.Close render={<IconButton label="Close" className="-mt-0.5 -mr-2" />}>
              <X size={16} aria-hidden />
            </Base.Close>
          </div>
          <div
            className="min-h-0 overflow-y-auto px-5 pt-4 pb-5"
            {...(reads ? { role: 'group', 'aria-label': title, tabIndex: 0 } : {})}
          >
            {children}
          </div>
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}
