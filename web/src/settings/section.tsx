// web/src/settings/section.tsx: layout of a settings section and its rows.
import type { ReactNode } from 'react';

export function Section({
  title,
  about,
  children,
}: {
  title: string;
  about?: ReactNode;
  children: ReactNode;
}): ReactNode {
  return (
    <section aria-label={title} className="mt-8">
      <h2 className="text-lg font-semibold">{title}</h2>
      {about === undefined ? null : <p className="mt-0.5 max-w-prose text-muted">{about}</p>}
      <div className="mt-3">{children}</div>
    </section>
  );
}

export function Setting({
  name,
  about,
  children,
}: {
  name: string;
  about?: ReactNode;
  children: ReactNode;
}): ReactNode {
  return (
    <div className="flex flex-wrap items-center justify-between gap-x-6 gap-y-2 border-b border-line py-3 last:border-b-0">
      <div className="min-w-0">
        <p className="font-medium">{name}</p>
        {about === undefined ? null : <p className="max-w-prose text-sm text-muted">{about}</p>}
      </div>
      {children}
    </div>
  );
}
