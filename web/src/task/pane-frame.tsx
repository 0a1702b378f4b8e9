// web/src/task/pane-frame.tsx: the frame of the terminal and log panes below the timeline.
import type { ReactNode } from 'react';

export function PaneFrame({
  title,
  tools,
  children,
}: {
  title: string;
  tools: ReactNode;
  children: ReactNode;
}): ReactNode {
  return (
    <section aria-label={title} className="flex h-80 min-h-48 shrink-0 flex-col border-t border-line bg-bg">
      <div className="flex flex-wrap items-center gap-2 border-b border-line px-4 py-1">
        <h2 className="grow font-medium">{title}</h2>
        {tools}
      </div>
      <div className="min-h-0 grow">{children}</div>
    </section>
  );
}
