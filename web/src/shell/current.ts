// web/src/shell/current.ts: the project and task in the URL.
import { useParams } from '@tanstack/react-router';
import { useEffect } from 'react';
import type { ApiProject } from '../../../src/protocol/api/api.ts';
import { useProjects } from '../api/queries.ts';
import { readPreference, usePreference, writePreference } from '../look/preferences.ts';

interface Current {
  /** From the URL, or the last open project: the settings page belongs to none. */
  readonly project: string | null;
  readonly task: string | null;
}

export function useCurrent(): Current {
  const params: { project?: string; task?: string } = useParams({ strict: false });
  const [last] = usePreference<string | null>('last-project', null);
  // Written when this tab goes to a project, not when another tab writes its own: two tabs would correct each other for ever.
  useEffect(() => {
    if (params.project !== undefined && params.project !== readPreference('last-project', null))
      writePreference('last-project', params.project);
  }, [params.project]);
  const { data: projects } = useProjects();
  return { project: params.project ?? last ?? projects?.[0]?.id ?? null, task: params.task ?? null };
}

export function useCurrentProject(): ApiProject | null {
  const { project } = useCurrent();
  const { data } = useProjects();
  return data?.find(({ id }) => id === project) ?? null;
}
