import './parent';
import 'reflect-metadata';
import { serve } from './serve';

serve();
