// web/src/shell/last-project.tsx: `/` leads to the project that was open last.
import { Navigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useProjects } from '../api/queries.ts';
import { readPreference } from '../look/preferences.ts';

export function LastProject(): ReactNode {
  const { data: projects } = useProjects();
  if (projects === undefined) return null;
  const last = readPreference<string | null>('last-project', null);
  const project = projects.find(({ id }) => id === last) ?? projects[0];
  if (project === undefined) return <p>No project yet.</p>;
  return <Navigate to="/p/$project" params={{ project: project.id }} replace />;
}
