// web/src/settings/page.tsx: the settings page.
import type { ReactNode } from 'react';
import { useAbout } from '../api/queries.ts';
import { Failure, Skeleton } from '../ui/states.tsx';
import { Agents } from './agents.tsx';
import { Appearance } from './appearance.tsx';
import { KeySettings } from './key-settings.tsx';
import { Machine } from './machine.tsx';
import { Projects } from './projects.tsx';
import { Storage } from './storage.tsx';

export function SettingsPage(): ReactNode {
  const { data: about, error, refetch } = useAbout();
  return (
    <div className="mx-auto max-w-4xl px-3 pt-4 pb-16 md:px-6">
      <h1 className="text-xl font-semibold">Settings</h1>
      {error === null ? null : <Failure error={error} retry={() => void refetch()} />}
      {about === undefined && error === null ? <Skeleton label="Loading" /> : null}
      {about === undefined ? null : <Agents agents={about.agents} defaultAgent={about.defaults.agent} />}
      {about === undefined ? null : <Machine about={about} />}
      <Appearance />
      <KeySettings />
      <Projects />
      <Storage />
    </div>
  );
}
