// web/src/settings/appearance.tsx: theme, colours and notifications.
import type { ReactNode } from 'react';
import { usePreference } from '../look/preferences.ts';
import { usePalette, useTheme } from '../look/theme.ts';
import type { Palette, Theme } from '../look/theme.ts';
import { requestNotifications, useNotificationState } from '../shell/notify.ts';
import { Button } from '../ui/button.tsx';
import { Checkbox, Segments } from '../ui/fields.tsx';
import { Section, Setting } from './section.tsx';

export function Appearance(): ReactNode {
  const [theme, setTheme] = useTheme();
  const [palette, setPalette] = usePalette();
  const notifying = useNotificationState();
  const [, setNotify] = usePreference<boolean | null>('notify', null);
  return (
    <Section title="Appearance and notifications">
      <Setting name="Theme">
        <Segments<Theme>
          label="Theme"
          value={theme}
          choices={[
            { value: 'system', label: 'System' },
            { value: 'light', label: 'Light' },
            { value: 'dark', label: 'Dark' },
          ]}
          onChange={setTheme}
        />
      </Setting>
      <Setting name="Colours" about="For added and removed, success and failure. Icons and words always say the same.">
        <Segments<Palette>
          label="Colours"
          value={palette}
          choices={[
            { value: 'green-red', label: 'Green and red' },
            { value: 'blue-orange', label: 'Blue and orange' },
          ]}
          onChange={setPalette}
        />
      </Setting>
      <Setting
        name="Notifications"
        about="When a task needs you, is ready or has failed while this window is in the background. Never for progress."
      >
        {notifying === 'impossible' ? (
          <span className="text-sm text-muted">Blocked by the browser</span>
        ) : notifying === 'unknown' ? (
          <Button onClick={() => void requestNotifications()}>Turn on notifications</Button>
        ) : (
          <Checkbox checked={notifying === 'on'} onChange={setNotify} label="Notifications" />
        )}
      </Setting>
    </Section>
  );
}
