import './process/parent';
import 'reflect-metadata';
import { serve } from './process/serve';

serve();
