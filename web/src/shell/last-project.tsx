// web/src/shell/last-project.tsx: `/` redirects to the last open project, or asks for the first one.
import { Navigate } from '@tanstack/react-router';
import { FolderGit2 } from 'lucide-react';
import type { ReactNode } from 'react';
import { useAbout, useProjects } from '../api/queries.ts';
import { readPreference } from '../look/preferences.ts';
import { cleanLine } from '../text/clean.ts';
import { Empty, Failure, Skeleton } from '../ui/states.tsx';
import { AddProjectForm } from './add-project.tsx';

export function LastProject(): ReactNode {
  const { data: projects, error, refetch } = useProjects();
  const { data: about } = useAbout();
  if (error !== null) return <Failure error={error} retry={() => void refetch()} />;
  if (projects === undefined) return <Skeleton label="Loading" />;
  const last = readPreference<string | null>('last-project', null);
  const project = projects.find(({ id }) => id === last) ?? projects[0];
  if (project !== undefined) return <Navigate to="/p/$project" params={{ project: project.id }} search={{}} replace />;
  return (
    <div className="mx-auto max-w-lg">
      <h1 className="unseen">Projects</h1>
      <Empty icon={<FolderGit2 size={32} aria-hidden />} title="Which repository should agents work on?">
        Each task works on a private copy in a sandbox. Your files change only when you merge.
      </Empty>
      {about !== undefined && !about.sandbox.ok ? (
        <Failure error={new Error(cleanLine(about.sandbox.text))} title="Sandboxes do not work on this machine" />
      ) : null}
      <div className="px-4">
        <AddProjectForm onDone={() => undefined} />
      </div>
    </div>
  );
}
