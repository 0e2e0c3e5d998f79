import { Controller, Get } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiProperty, ApiTags } from '@nestjs/swagger';
import { Public } from '../auth/access';

class WelcomeAnswer {
  @ApiProperty({ example: 'gamewharf' })
  name: string;

  @ApiProperty({ description: 'Where the description of this API is', example: '/openapi.json' })
  openapi: string;
}

@ApiTags('Operations')
@Controller()
export class WelcomeController {
  @Get()
  @ApiOperation({ summary: 'What answers here' })
  @Public()
  @ApiOkResponse({ type: WelcomeAnswer })
  welcome(): WelcomeAnswer {
    return { name: 'gamewharf', openapi: '/openapi.json' };
  }
}
