// web/src/look/theme.ts: light, dark, or as the system has it; and the colours of what is good and bad, added and removed.
import { useSyncExternalStore } from 'react';
import { readPreference, usePreference } from './preferences.ts';

const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

export type Palette = 'green-red' | 'blue-orange';

const dark = matchMedia('(prefers-color-scheme: dark)');

/** Sets it now, and again whenever the user or the system changes it. */
export function keepTheme(): void {
  const set = (): void => {
    document.documentElement.dataset['theme'] = shown();
    document.documentElement.dataset['palette'] = readPreference<Palette>('palette', 'green-red');
  };
  set();
  dark.addEventListener('change', set);
  addEventListener('ags-preference', set);
}

function shown(): 'light' | 'dark' {
  const theme = readPreference<Theme>('theme', 'system');
  return theme === 'system' ? (dark.matches ? 'dark' : 'light') : theme;
}

export const usePalette = (): [Palette, (palette: Palette) => void] => usePreference<Palette>('palette', 'green-red');

export const useTheme = (): [Theme, (theme: Theme) => void] => usePreference<Theme>('theme', 'system');

/** What is shown right now: for what cannot be told by a token of CSS. */
export function useShownTheme(): 'light' | 'dark' {
  return useSyncExternalStore(subscribe, shown);
}

function subscribe(changed: () => void): () => void {
  dark.addEventListener('change', changed);
  addEventListener('ags-preference', changed);
  return () => {
    dark.removeEventListener('change', changed);
    removeEventListener('ags-preference', changed);
  };
}
